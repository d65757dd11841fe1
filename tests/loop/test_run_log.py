"""The run log: what it writes is in the store, what it reads survives a new process, every view is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentforge.loop import RunLog
from agentforge.schema import (
    Attempt,
    AttemptStatus,
    Critique,
    Evaluation,
    EvaluationStatus,
    Event,
    Evidence,
    Intent,
    Level,
    LLMCall,
    ModelPlan,
    Plan,
    Priors,
    Progress,
    ReasonCode,
    RunStatus,
    SearchSummary,
    StageResult,
    Usage,
    UsageError,
)
from agentforge.store import Store
from tests.store import nouns

from .conftest import make_run

DEFINITION, WORKLOADS = nouns.definition(), (nouns.workload(),)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as opened:
        opened.create_run(make_run().model_copy(update={"device": "null device", "created": nouns.NOW}))
        yield opened


@pytest.fixture
def run_log(store: Store) -> RunLog:
    return RunLog(store, store.get_run("run"))


def again(run_log: RunLog) -> RunLog:
    """As another process opens it."""
    return RunLog(run_log.store, run_log.store.get_run("run"))


def attempt(run_log: RunLog, number: int, bottleneck: str = "b", **changes: object) -> Attempt:
    plan = Plan(strategy="fuse")
    made = Attempt(id=run_log.attempt_id(number), run="run", bottleneck=bottleneck, number=number, plan=plan)
    return run_log.put(made.model_copy(update=changes))


def test_attempts_have_the_same_identifiers_after_a_resume(run_log: RunLog) -> None:
    assert run_log.attempt_id(7) == "run/0007" == again(run_log).attempt_id(7)
    assert run_log.number("run/0007") == 7


def test_attempts_are_in_the_order_of_their_numbers(run_log: RunLog) -> None:
    for number, bottleneck in ((3, "b"), (1, "b"), (2, "other")):
        attempt(run_log, number, bottleneck)
    for log in (run_log, again(run_log)):
        assert [a.number for a in log.attempts()] == [1, 2, 3]
        assert [a.number for a in log.attempts("b")] == [1, 3]
    assert run_log.attempt("run/0009") is None


def test_an_attempt_replaces_its_earlier_state(run_log: RunLog) -> None:
    attempt(run_log, 1)
    done = attempt(run_log, 1, status=AttemptStatus.DONE)
    assert run_log.attempt("run/0001") == done == again(run_log).attempt("run/0001")
    assert len(again(run_log).attempts()) == 1


def test_the_past_has_all_that_agents_see(run_log: RunLog) -> None:
    solution = nouns.solution()
    evaluation = nouns.evaluation(solution)
    critique = Critique(kind="optimize")
    attempt(
        run_log,
        1,
        solution=run_log.put_solution(solution),
        evaluation=run_log.put_evaluation(evaluation),
        critique=critique,
    )
    attempt(run_log, 2, parent="run/0001", error="no template")
    for log in (run_log, again(run_log)):
        first, second = log.past("b")
        assert (first.solution, first.evaluation, first.critique) == (solution, evaluation, critique)
        assert (second.parent, second.solution, second.evaluation) == ("run/0001", None, None)
        assert second.error == "no template"
        assert log.evaluations("b") == {"run/0001": evaluation}
    assert run_log.past("other") == ()


def test_an_attempts_solution_has_its_own_parameters(run_log: RunLog) -> None:
    """Another run stored the same code first."""
    run_log.store.save_solution(nouns.solution(author="gpt", parameters={"tile": 8}))
    for number, tile in enumerate((16, 32), start=1):
        own = nouns.solution(parameters={"tile": tile})
        run_log.put(run_log.with_solution(attempt(run_log, number), own))
    old = attempt(run_log, 3, solution=nouns.solution().hash)  # as an older version kept it
    for log in (run_log, again(run_log)):
        found = [log.solution_of(one) for one in log.attempts()]
        assert [p.solution for p in log.past("b")] == found
        said = [(one.author, one.parameters) for one in found]
        assert said == [("playbook", {"tile": 16}), ("playbook", {"tile": 32}), ("gpt", {"tile": 8})]
        assert {one.hash for one in found} == {old.solution}


def test_repairs_and_tuning_of_a_follow_up_are_built_on_what_came_before_it(run_log: RunLog) -> None:
    """fuse (passed) <- tile (failed) <- its repair <- its tuning; and a failed start with its repair."""
    chain = [("fuse", True, 2.0), ("tile", False, None), ("tile", True, 2.1), ("tile", True, 2.2)]
    for number, (strategy, passed, speedup) in enumerate(chain, start=1):
        status = EvaluationStatus.PASSED if passed else EvaluationStatus.CRASHED
        verdict = nouns.evaluation(nouns.solution(str(number)), status=status, speedup=speedup)
        parent = run_log.attempt_id(number - 1) if number > 1 else None
        kept = run_log.put_evaluation(verdict)
        attempt(run_log, number, plan=Plan(strategy=strategy), parent=parent, evaluation=kept)
    made = run_log.attempts()
    found = [run_log.built_on(one) for one in made]
    assert found[0] is None
    assert [one and (one[0], one[1].performance is not None) for one in found[1:]] == [("fuse", True)] * 3
    start = attempt(run_log, 5, evaluation=made[1].evaluation)
    repair = attempt(run_log, 6, parent=start.id)
    assert run_log.built_on(repair) == ("fuse", run_log.evaluation(start)), "of nothing that passed"


def test_unknown_prices_count_nothing(run_log: RunLog) -> None:
    for number, dollars in enumerate((0.5, None, 0.25), 1):
        attempt(run_log, number, usage=Usage(dollars=dollars))
    assert run_log.dollars() == 0.75


def test_calls_of_no_attempt_are_spent_too(run_log: RunLog) -> None:
    """The planner of the whole model and the author have none; a call that a kill cut off has its reserve."""
    attempt(run_log, 1, usage=Usage(dollars=0.25))
    fields = {"run": "run", "role": "planner", "model": "m", "prompt": "p", "time": nouns.NOW}
    for key, status, dollars in (("a", "answered", 0.25), ("b", "answered", 0.5), ("c", "begun", 1.0)):
        run_log.store.save_call(LLMCall(key=key, status=status, dollars=dollars, **fields))
    resumed = again(run_log)
    assert resumed.dollars() == 1.75
    resumed.pay(LLMCall(key="d", status="failed", dollars=0.125, **fields))
    resumed.pay(LLMCall(key="e", status="failed", **fields))
    assert resumed.dollars() == 1.875


def test_a_finished_evaluation_of_this_run_is_found_and_none_of_another_one(run_log: RunLog) -> None:
    solution = nouns.solution()
    asked = (DEFINITION, WORKLOADS, solution, Level.FULL)
    assert run_log.finished_evaluation(*asked) is None
    run_log.store.save_evaluation(nouns.evaluation(solution, after_s=90.0))
    assert run_log.finished_evaluation(*asked) is None, "of no run"
    later = nouns.evaluation(solution, after_s=60.0)
    identifier = run_log.put_evaluation(later)
    assert run_log.finished_evaluation(*asked) == (identifier, later)
    assert again(run_log).finished_evaluation(*asked) == (identifier, later)
    assert run_log.finished_evaluation(DEFINITION, WORKLOADS, solution, Level.QUICK) is None


SOLUTION = nouns.solution()
ASKED = (DEFINITION, WORKLOADS, SOLUTION, Level.FULL)


def other_run(store: Store, conditions: str = "here", **changes: object) -> RunLog:
    """A later run of the same database."""
    store.create_run(make_run("later").model_copy(update={"device": "null device", **changes}))
    return RunLog(store, store.get_run("later"), conditions=conditions)


def judged(store: Store, evaluation: Evaluation, conditions: str = "here", asked: Any = ASKED) -> str:
    """The identifier of what the first run's referee said."""
    log = RunLog(store, store.get_run("run"), conditions=conditions)
    return log.put_evaluation(evaluation, log.conditions(*asked[:2]))


@pytest.mark.parametrize(
    "status", [EvaluationStatus.PASSED, EvaluationStatus.TIMEOUT, EvaluationStatus.OUT_OF_MEMORY]
)
def test_another_run_takes_a_verdict_and_says_so(store: Store, status: EvaluationStatus) -> None:
    stage = StageResult(name="timing", status=status, seconds=9.0)
    before = nouns.evaluation(SOLUTION, status=status, seconds=60.0, stages=(stage,))
    identifier = judged(store, before)
    log = other_run(store)
    found = log.finished_evaluation(*ASKED)
    assert found is not None
    own, taken = found
    assert own != identifier
    assert taken.reused == f"evaluation {identifier} of run run (the same source)"
    assert (taken.status, taken.performance, taken.timestamp) == (
        before.status, before.performance, before.timestamp,
    )  # fmt: skip
    assert (taken.seconds, sum(taken.seconds_by_stage().values())) == (0.0, 0.0), "it took this run no time"
    assert [e.text for e in store.events("later") if isinstance(e, Progress)] == [
        f"not measured again: {taken.reused} says {status.value}"
    ]
    assert log.finished_evaluation(*ASKED) == found
    assert len(store.events("later")) == 1, "once is enough"
    assert store.run_evaluations("later", DEFINITION.hash) == (taken,)


def test_a_copy_is_not_copied_again(store: Store) -> None:
    identifier = judged(store, nouns.evaluation(SOLUTION))
    other_run(store).finished_evaluation(*ASKED)
    store.create_run(make_run("third").model_copy(update={"device": "null device"}))
    third = RunLog(store, store.get_run("third"), conditions="here").finished_evaluation(*ASKED)
    assert third is not None
    assert f"evaluation {identifier} of run run" in third[1].reused
    assert store.run_evaluations("third", DEFINITION.hash) == (third[1],), "each run has a copy of its own"
    assert len(store.run_evaluations("later", DEFINITION.hash)) == 1


@pytest.mark.parametrize(("made", "asks"), [("here", "elsewhere"), ("", "here"), ("here", ""), ("", "")])
def test_other_conditions_or_none_share_nothing(store: Store, made: str, asks: str) -> None:
    judged(store, nouns.evaluation(SOLUTION), made)
    assert other_run(store, asks).finished_evaluation(*ASKED) is None


def test_what_was_imported_is_not_taken(store: Store) -> None:
    store.save_evaluation(nouns.evaluation(SOLUTION), "run")
    assert other_run(store).finished_evaluation(*ASKED) is None


@pytest.mark.parametrize(("codes", "taken"), [((), True), ((ReasonCode.STARVED,), False)])
def test_a_hang_counts_for_other_runs_unless_the_machine_was_busy(
    store: Store, codes: tuple[ReasonCode, ...], taken: bool
) -> None:
    why: dict[str, Any] = {
        "reasons": ("late", "busy")[: 1 + len(codes)],
        "codes": (ReasonCode.TIMEOUT, *codes),
    }
    judged(store, nouns.evaluation(SOLUTION, status=EvaluationStatus.TIMEOUT, **why))
    assert (other_run(store).finished_evaluation(*ASKED) is not None) == taken


def test_what_a_busy_machine_spoiled_is_measured_again(store: Store) -> None:
    doubt = {"reasons": ("busy",), "codes": (ReasonCode.NOISY_CONTROL,), "evidence": Evidence.UNVERIFIED}
    judged(store, nouns.evaluation(SOLUTION, **doubt))
    assert other_run(store).finished_evaluation(*ASKED) is None


def test_a_reference_with_files_beside_it_is_judged_anew(store: Store) -> None:
    beside = DEFINITION.model_copy(update={"import_root": "/models"})
    asked = (beside, *ASKED[1:])
    judged(store, nouns.evaluation(SOLUTION, definition=beside.hash), asked=asked)
    assert other_run(store).finished_evaluation(*asked) is None


def test_weights_of_several_workloads_are_part_of_the_conditions(store: Store) -> None:
    workloads = tuple(nouns.workload(rows) for rows in (8, 16))
    heavier = (workloads[0], workloads[1].model_copy(update={"weight": 5.0}))
    log = other_run(store)
    assert log.conditions(DEFINITION, workloads) == log.conditions(DEFINITION, workloads[::-1])
    assert log.conditions(DEFINITION, workloads) != log.conditions(DEFINITION, heavier)
    assert log.conditions(DEFINITION, workloads[1:]) == log.conditions(DEFINITION, heavier[1:])


def test_equal_machine_code_shares_a_verdict_over_runs(store: Store) -> None:
    first = RunLog(store, store.get_run("run"), conditions="here")
    identifier = judged(store, nouns.evaluation(SOLUTION))
    attempt(first, 1, DEFINITION.hash, solution=first.put_solution(SOLUTION), machine_code="abc")
    log, other = other_run(store), nouns.solution("pass  # in other words")
    asked = (DEFINITION, WORKLOADS, other, Level.FULL)
    for code in ("", "ab", "abcd"):
        assert log.finished_evaluation(*asked, code) is None
    found = log.finished_evaluation(*asked, "abc")
    assert found is not None
    assert found[1].solution == other.hash
    assert found[1].reused == f"evaluation {identifier} of run run (the same machine code)"


def test_only_an_evaluated_attempt_is_promoted(run_log: RunLog) -> None:
    with pytest.raises(ValueError, match="was not evaluated"):
        run_log.promote(attempt(run_log, 1))
    solution = nouns.solution()
    won = attempt(
        run_log,
        1,
        solution=run_log.put_solution(solution),
        evaluation=run_log.put_evaluation(nouns.evaluation(solution)),
    )
    run_log.promote(won)
    (promotion,) = run_log.store.promotions("run")
    assert (promotion.bottleneck, promotion.solution) == ("b", solution.hash)


def test_records_are_kept_and_replaced(run_log: RunLog) -> None:
    assert run_log.record(Priors) is None
    run_log.keep(Priors(by_bottleneck={"b": 0.3}))
    run_log.keep(ModelPlan(regions=()))
    for reason in ("interrupted", "done"):
        run_log.keep(SearchSummary(reason=reason))
    for log in (run_log, again(run_log)):
        assert log.record(Priors) == Priors(by_bottleneck={"b": 0.3})
        assert log.record(ModelPlan) == ModelPlan(regions=())
        assert log.record(SearchSummary) == SearchSummary(reason="done")
        assert log.record(Intent) is None


def test_records_are_read_without_the_events(run_log: RunLog, monkeypatch: pytest.MonkeyPatch) -> None:
    run_log.keep(Intent(text="softmax"))
    monkeypatch.setattr(Store, "events", None)
    assert run_log.record(Intent) == Intent(text="softmax")


def test_an_event_is_stored_before_a_view_is_told(store: Store) -> None:
    told: list[Event] = []

    def view(event: Event) -> None:
        assert store.events("run")[-1] == event
        told.append(event)

    run_log = RunLog(store, store.get_run("run"), view)
    returned = [run_log.event(Progress(text=text)) for text in ("one", "two")]
    assert returned == told == list(store.events("run"))
    assert [(e.seq, e.run) for e in told] == [(1, "run"), (2, "run")]


def test_a_view_sees_one_stream_though_attempts_are_made_side_by_side(store: Store) -> None:
    told: list[int] = []
    run_log = RunLog(store, store.get_run("run"), lambda event: told.append(event.seq))

    def tell() -> None:
        for number in range(10):
            run_log.event(Progress(text=str(number)))

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == list(range(1, 41))


def test_the_run_is_the_one_in_the_store(run_log: RunLog) -> None:
    run_log.set_status(RunStatus.STITCHING, artifact="made")
    run_log.spend(12.5)
    target = nouns.target()
    run_log.set_target(target)
    stored = run_log.store.get_run("run")
    assert run_log.run == stored
    assert (stored.status, stored.artifact, stored.seconds_used) == (RunStatus.STITCHING, "made", 12.5)
    assert run_log.store.get_target(stored.target) == target


@pytest.mark.slow
def test_a_run_that_is_gone_is_said_to_be(store: Store) -> None:
    run_log = RunLog(store, make_run("gone"))
    with pytest.raises(UsageError, match="no run 'gone'"):
        run_log.event(Progress(text="lost"))
    with pytest.raises(UsageError, match="no run 'gone'"):
        run_log.keep(Priors(by_bottleneck={}))


@pytest.mark.parametrize(
    ("asks", "then"), [("repair", "abandon"), ("optimize", "abandon"), ("accept", "accept")]
)
def test_what_no_planner_takes_up_is_given_up(run_log: RunLog, asks: Any, then: str) -> None:
    made = run_log.put(attempt(run_log, 1, critique=Critique(kind=asks)))
    run_log.give_up(made.id)
    given_up = run_log.attempt(made.id)
    assert given_up is not None and given_up.critique is not None
    assert given_up.critique.kind == then
