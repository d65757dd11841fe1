"""What the items of a campaign found and cost, read at once, on SQLite and PostgreSQL."""

from __future__ import annotations

from agentforge.schema import Evidence, JudgingCode, LLMCall, ReasonCode, TryOutcome
from agentforge.store import Store
from agentforge.store.campaigns import Spending
from tests.campaigns.conftest import finish
from tests.store import nouns
from tests.store.campaigns.test_queue import take

WEAK = {"evidence": Evidence.SUSPICIOUS, "reasons": ("weak",), "codes": (ReasonCode.WEAK_TASK,)}


def test_results_are_those_of_the_runs_that_count(store: Store) -> None:
    store.create_campaign(*nouns.campaign())
    first, second = take(store), take(store)
    finish(store, "a", speedup=2.0)
    store.save_record("a", JudgingCode(codes=("one",)))
    store.attach_run(first, "a")
    store.end_item(first, TryOutcome.DONE)
    store.create_run(nouns.run("b"))
    store.attach_run(second, "b")
    finish(store, "of nothing", speedup=2.0)
    weak = nouns.evaluation(speedup=None, **WEAK)
    store.save_evaluation(weak, "b")
    store.save_evaluation(nouns.evaluation(speedup=None, log='it prints "weak_task"'), "b")
    found = store.campaign_results("night")
    assert found.keys() == {"a", "b"}
    done = found["a"]
    assert done.run == store.get_run("a")
    assert done.stitched is not None and done.stitched.evaluation is not None
    assert done.evaluation == store.get_evaluation(done.stitched.evaluation)
    assert (done.native, done.judged, done.weak) == (None, JudgingCode(codes=("one",)), ())
    assert (found["b"].stitched, found["b"].evaluation, list(found["b"].weak)) == (None, None, [weak])
    store.delete_run("a")
    assert store.campaign_results("night").keys() == {"b"}
    assert store.campaign_results("day") == {}


def test_each_item_has_its_own_spending(store: Store) -> None:
    store.create_campaign(*nouns.campaign())
    items = [take(store), take(store)]
    for number, item in enumerate(items):
        store.create_run(nouns.run(f"run-{number}"))
        store.attach_run(item, f"run-{number}")
        call = {"key": f"k{number}", "run": f"run-{number}", "role": "coder", "model": "m", "prompt": "p"}
        numbers = {"tokens_in": 100, "tokens_out": 50, "dollars": 0.5, "time": nouns.NOW}
        status = "begun" if number else "answered"
        store.save_call(LLMCall.model_validate({**call, **numbers, "status": status}))
    assert store.item_spending("night") == {
        items[0].id: Spending(150, 0.5, 0),
        items[1].id: Spending(0, 0.0, 1),
    }
