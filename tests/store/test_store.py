"""What every database must keep: the same tests on SQLite and on PostgreSQL."""

from __future__ import annotations

import multiprocessing
import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, text, update

from agentforge.schema import (
    Attempt,
    AttemptStatus,
    Budget,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    Level,
    Outcome,
    Plan,
    RunSettings,
    RunStatus,
    StoreError,
    Strategy,
    UsageError,
    content_hash,
)
from agentforge.store import Store, evaluation_id
from agentforge.store._engine import add_all_once
from agentforge.store.knowledge import outcomes
from agentforge.store.tables import EvaluationRow

from . import nouns


def test_a_second_opening_sees_everything(url: str) -> None:
    with Store(url) as first:
        first.create_run(nouns.run())
    with Store(url) as second:
        assert second.get_run("20260102").name == "llama"


class TestRuns:
    def test_kept_whole(self, store: Store) -> None:
        store.create_run(nouns.run())
        assert store.get_run(nouns.run().id) == nouns.run()

    def test_an_older_version_permitted_more_minutes(self, store: Store) -> None:
        long = nouns.run(budget=Budget(minutes=1e9))
        store.create_run(long)
        assert store.list_runs() == (long,)

    def test_changes(self, store: Store) -> None:
        store.create_run(nouns.run())
        now = store.update_run(nouns.run().id, status=RunStatus.FINISHED, seconds_used=3.5)
        assert now.status is RunStatus.FINISHED
        assert now.updated > nouns.NOW
        assert store.get_run(now.id) == now

    def test_a_change_that_does_not_fit_changes_nothing(self, store: Store) -> None:
        store.create_run(nouns.run())
        with pytest.raises(ValueError):
            store.update_run(nouns.run().id, status="dancing")
        with pytest.raises(ValueError):
            store.update_run(nouns.run().id, colour="red")
        assert store.get_run(nouns.run().id) == nouns.run()

    def test_an_identifier_is_taken_once(self, store: Store) -> None:
        store.create_run(nouns.run())
        with pytest.raises(StoreError):
            store.create_run(nouns.run(name="other"))
        assert store.get_run(nouns.run().id).name == "llama"

    @pytest.mark.parametrize("prefix", ["nothing", "", "%", "2026_102", "20260102-0304-llama-7f3a-"])
    def test_none_begins_so(self, store: Store, prefix: str) -> None:
        store.create_run(nouns.run())
        with pytest.raises(UsageError, match="runs list"):
            store.get_run(prefix)

    def test_several_begin_so(self, store: Store) -> None:
        for name in ("2026-a", "2026-ab", "2026-c"):
            store.create_run(nouns.run(name))
        with pytest.raises(UsageError, match="2026-a, 2026-ab"):
            store.get_run("2026")
        assert store.get_run("2026-a").id == "2026-a", "a whole identifier is never ambiguous"

    def test_the_newest_first(self, store: Store) -> None:
        for hours in (2, 1, 3):
            store.create_run(nouns.run(f"r{hours}", created=nouns.NOW + timedelta(hours=hours)))
        assert [r.id for r in store.list_runs()] == ["r3", "r2", "r1"]
        assert [r.id for r in store.list_runs(limit=1)] == ["r3"]


class TestEvents:
    def test_count_without_gaps(self, store: Store) -> None:
        store.create_run(nouns.run())
        for i in range(5):
            event = nouns.event("x.done", {"i": i, "nested": {"a": [1, None]}})
            assert store.append_event(nouns.run().id, event).seq == i + 1
        events = store.events(nouns.run().id)[3:]
        assert [(e.seq, e.data["i"]) for e in events] == [(4, 3), (5, 4)]
        assert events[0].data["nested"] == {"a": [1, None]}

    def test_runs_do_not_share_a_stream(self, store: Store) -> None:
        for name in ("a", "b"):
            store.create_run(nouns.run(name))
            assert store.append_event(name, nouns.event("started")).seq == 1

    def test_no_run_no_event(self, store: Store) -> None:
        with pytest.raises(UsageError, match="no run 'nothing'"):
            store.append_event("nothing", nouns.event("started"))

    def test_a_bad_event_leaves_no_gap(self, store: Store) -> None:
        store.create_run(nouns.run())
        with pytest.raises(ValueError):
            store.append_event(nouns.run().id, nouns.event("", {}))
        assert store.append_event(nouns.run().id, nouns.event("started")).seq == 1

    def test_threads_take_turns(self, store: Store) -> None:
        store.create_run(nouns.run())

        def work() -> None:
            for _ in range(10):
                store.append_event(nouns.run().id, nouns.event("tick"))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [e.seq for e in store.events(nouns.run().id)] == list(range(1, 41))

    def test_processes_take_turns(self, url: str) -> None:
        with Store(url) as store:
            store.create_run(nouns.run())
            context = multiprocessing.get_context("spawn")
            children = [context.Process(target=_tick, args=(url, 15)) for _ in range(2)]
            for child in children:
                child.start()
            for child in children:
                child.join(60)
            assert [c.exitcode for c in children] == [0, 0]
            assert [e.seq for e in store.events(nouns.run().id)] == list(range(1, 31))


def _tick(url: str, times: int) -> None:
    with Store(url) as store:
        for _ in range(times):
            store.append_event(nouns.run().id, nouns.event("tick"))


class TestNouns:
    def test_kept_whole(self, store: Store) -> None:
        store.create_run(nouns.run())
        key = store.save_target(nouns.target())
        assert store.get_target(key) == nouns.target()
        assert store.get_definition(store.save_definition(nouns.definition())) == nouns.definition()
        assert store.get_solution(store.save_solution(nouns.solution())) == nouns.solution()
        assert store.get_profile(nouns.run().id) is None
        store.save_profile(nouns.run().id, nouns.profile())
        store.save_profile(nouns.run().id, nouns.profile())
        assert store.get_profile(nouns.run().id) == nouns.profile()

    def test_the_first_of_equal_solutions_stays(self, store: Store) -> None:
        store.save_solution(nouns.solution())
        key = store.save_solution(nouns.solution(name="again", author="gpt"))
        assert store.get_solution(key).author == "playbook"

    def test_a_target_stays_beside_others_of_its_definition(self, store: Store) -> None:
        other = nouns.target().model_copy(update={"device": "cuda:0"})
        keys = [store.save_target(target) for target in (nouns.target(), other, nouns.target(), other)]
        assert keys[:2] == keys[2:]
        assert [store.get_target(key) for key in keys[:2]] == [nouns.target(), other]
        for key in keys:
            run = nouns.run().model_copy(update={"target": key})
            assert store.definition_of(run) == other.definition.hash
        assert store.definition_of(nouns.run().model_copy(update={"target": "elsewhere"})) == "elsewhere"

    def test_what_another_version_wrote_is_named(self, store: Store, url: str) -> None:
        store.create_run(nouns.run())
        key = store.save_solution(nouns.solution())
        store.save_record(nouns.run().id, RunSettings(out="made"))
        engine = create_engine(url)
        with engine.begin() as connection:
            for table in ("runs", "solutions"):
                body = "'{\"new\": 1, ' || substr(body, 2)"
                connection.execute(text(f"UPDATE {table} SET body = {body}"))
            connection.execute(text("UPDATE run_records SET name = 'newer'"))
        engine.dispose()
        for ask in (store.list_runs, lambda: store.get_run(nouns.run().id), lambda: store.get_solution(key)):
            with pytest.raises(StoreError, match="perhaps of another version"):
                ask()
        assert store.records(nouns.run().id) == {}

    @pytest.mark.parametrize("what", ["target", "definition", "solution", "evaluation", "attempt"])
    def test_what_is_not_there(self, store: Store, what: str) -> None:
        with pytest.raises(UsageError, match=f"no {what} 0123"):
            getattr(store, f"get_{what}")("0123")

    def test_what_a_candidate_printed_is_kept(self, store: Store) -> None:
        log = "nul \0, bell \a, emoji \U0001f600, quote '\"; DROP TABLE runs; --"
        key = store.save_evaluation(nouns.evaluation(log=log))
        assert store.get_evaluation(key).log == log


class TestEvaluations:
    def _find(self, store: Store, **changes: Any) -> tuple[str, Evaluation] | None:
        asked: dict[str, Any] = {
            "definition_hash": nouns.definition().hash,
            "solution_hash": nouns.solution().hash,
            "workload_hashes": (nouns.workload().hash,),
            "level": Level.FULL,
            "device": "null device",
        }
        return store.find_evaluation(**{**asked, **changes})

    def test_kept_once(self, store: Store) -> None:
        store.create_run(nouns.run())
        key = store.save_evaluation(nouns.evaluation(), nouns.run().id)
        assert store.save_evaluation(nouns.evaluation()) == key == evaluation_id(nouns.evaluation())
        assert store.get_evaluation(key) == nouns.evaluation()

    def test_infinities_are_kept(self, store: Store) -> None:
        wild = nouns.evaluation()
        performance = wild.performance
        assert performance is not None
        inf = Interval(point=1.0, low=0.0, high=float("inf"))
        changed = performance.model_copy(update={"control": inf})
        key = store.save_evaluation(wild.model_copy(update={"performance": changed}))
        again = store.get_evaluation(key).performance
        assert again is not None
        assert again.control.high == float("inf")

    def test_an_edit_is_noticed_and_an_older_version_is_none(self, store: Store) -> None:
        wide = nouns.performance(control=Interval(point=1.0, low=0.0, high=float("inf")))
        kept, edited, old = (nouns.evaluation(performance=wide, after_s=n) for n in range(3))
        for evaluation in (kept, edited, old):
            store.save_evaluation(evaluation)
        fields = old.model_dump(mode="json")
        older = content_hash({name: fields[name] for name in fields if name != "codes"}, length=24)
        faster = edited.model_dump_json().replace('"latency_s":1.0', '"latency_s":0.5')
        with store._db.write() as session:
            for evaluation, changes in (
                (edited, {"body": faster}),
                (old, {"id": older, "body": old.model_dump_json(exclude={"codes"})}),
            ):
                mine = EvaluationRow.id == evaluation_id(evaluation)
                session.execute(update(EvaluationRow).where(mine).values(changes))
        asked = (evaluation_id(kept), evaluation_id(edited), older)
        assert [store.edited_evaluation(one) for one in asked] == [False, True, False]

    def test_found_by_what_was_asked(self, store: Store) -> None:
        key = store.save_evaluation(nouns.evaluation())
        found = self._find(store)
        assert found is not None
        assert found == (key, nouns.evaluation())
        for changes in (
            {"definition_hash": "x"},
            {"solution_hash": "x"},
            {"workload_hashes": ("x",)},
            {"workload_hashes": ()},
            {"level": Level.QUICK},
            {"device": "other"},
        ):
            assert self._find(store, **changes) is None

    def test_the_newest_is_found_whatever_the_order_of_workloads(self, store: Store) -> None:
        for seconds in (5.0, 9.0, 1.0):
            store.save_evaluation(nouns.evaluation(after_s=seconds, workloads=("a", "b")))
        found = self._find(store, workload_hashes=("b", "a"))
        assert found is not None
        assert found[1].timestamp == nouns.NOW + timedelta(seconds=9)

    def test_a_failure_of_the_harness_is_not_found(self, store: Store) -> None:
        store.save_evaluation(nouns.evaluation(status=EvaluationStatus.HARNESS_ERROR))
        assert self._find(store) is None

    def test_of_a_run_that_is_not_there(self, store: Store) -> None:
        with pytest.raises(StoreError):
            store.save_evaluation(nouns.evaluation(), "nothing")
        assert self._find(store) is None


class TestAttempts:
    def _attempt(self, number: int, **changes: Any) -> Attempt:
        fields = {"id": f"a{number}", "run": nouns.run().id, "bottleneck": "b", "number": number}
        return Attempt(**{**fields, **changes})

    def test_the_latest_state_holds(self, store: Store) -> None:
        store.create_run(nouns.run())
        store.save_attempt(self._attempt(1))
        coded = self._attempt(1, status=AttemptStatus.CODED, plan=Plan(strategy="fuse"), solution="s")
        store.save_attempt(coded)
        assert store.attempts(nouns.run().id) == (coded,)
        assert store.get_attempt("a1") == coded

    def test_in_order(self, store: Store) -> None:
        store.create_run(nouns.run())
        for number in (10, 2, 1):
            store.save_attempt(self._attempt(number))
        assert [a.number for a in store.attempts(nouns.run().id)] == [1, 2, 10]
        assert store.attempts("other") == ()

    def test_a_number_is_taken_once(self, store: Store) -> None:
        store.create_run(nouns.run())
        store.save_attempt(self._attempt(1))
        with pytest.raises(StoreError):
            store.save_attempt(self._attempt(1, id="other"))

    def test_promotions(self, store: Store) -> None:
        store.create_run(nouns.run())
        promote = store.save_promotion
        for bottleneck, solution in (("b1", "s1"), ("b2", "s2"), ("b1", "s3"), ("b1", "s3")):
            promote(nouns.run().id, bottleneck, solution, "e")
        assert [(p.bottleneck, p.solution) for p in store.promotions(nouns.run().id)] == [
            ("b2", "s2"),
            ("b1", "s3"),
        ]


def outcome(number: int, log: float | None = 0.5, strategy: str = "fuse", **changes: Any) -> Outcome:
    fields: dict[str, Any] = {
        "id": f"o{number}",
        "strategy": strategy,
        "context": nouns.context(),
        "solution": f"s{number}",
        "evaluation": f"e{number}",
        "status": EvaluationStatus.PASSED,
        "evidence": Evidence.VERIFIED,
        "log_speedup": log,
        "parameters": {"tile": number},
        "time": nouns.NOW + timedelta(seconds=number),
    }
    return Outcome(**{**fields, **changes})


class TestOutcomes:
    def test_kept_once(self, store: Store) -> None:
        assert store.record_outcomes([outcome(1), outcome(2), outcome(1)]) == 2
        assert store.record_outcomes([outcome(2), outcome(3)]) == 1
        assert store.outcomes() == (outcome(1), outcome(2), outcome(3))
        assert store.outcomes("other") == ()

    def test_statistics(self, store: Store) -> None:
        logs = [0.1, 0.7, -0.2, 0.4]
        store.record_outcomes(outcome(i, log) for i, log in enumerate(logs))
        failed = {"log": None, "evidence": Evidence.UNVERIFIED}
        store.record_outcomes(
            [
                outcome(10, status=EvaluationStatus.CRASHED, **failed),
                outcome(11, status=EvaluationStatus.CHEATING, **failed),
                outcome(12, status=EvaluationStatus.HARNESS_ERROR, **failed),
                outcome(13, 3.0, evidence=Evidence.SUSPICIOUS),
                outcome(14, 3.0, evidence=Evidence.UNVERIFIED),
                outcome(15, -0.3, evidence=Evidence.UNVERIFIED),
            ]
        )
        (record,) = store.strategy_records()["fuse"]
        mean = sum(logs) / 4
        assert record.context == nouns.context()
        assert (record.n, record.failures, record.unproven, record.discouraging) == (4, 2, 3, 2)
        assert record.mean_log_speedup == pytest.approx(mean)
        assert record.var_log_speedup == pytest.approx(sum((x - mean) ** 2 for x in logs) / 3)
        assert (record.best_solution, record.best_log_speedup) == ("s1", 0.7)
        assert record.best_parameters == {"tile": 1}
        totals = store.outcome_totals()
        assert (totals.outcomes, totals.faster, totals.cheating) == (10, 3, 1)

    def test_a_pass_that_is_verified_later_is_forgotten(self, store: Store) -> None:
        quick = outcome(1, 3.0, evidence=Evidence.UNVERIFIED, solution="s")
        again = outcome(2, 2.9, evidence=Evidence.UNVERIFIED, solution="s")
        store.record_outcomes([quick, again])
        assert store.strategy_records()["fuse"][0].unproven == 1, "one solution"
        store.record_outcomes([outcome(3, 0.2, solution="s")])
        (record,) = store.strategy_records()["fuse"]
        assert (record.n, record.unproven, record.best_log_speedup) == (1, 0, 0.2)

    def test_contexts_and_strategies_are_apart(self, store: Store) -> None:
        store.record_outcomes(
            [
                outcome(1),
                outcome(2, context=nouns.context(dtype="bfloat16")),
                outcome(3, context=nouns.context(op_type="softmax")),
                outcome(4, strategy="tile"),
            ]
        )
        records = store.strategy_records()
        assert {s: sum(r.n for r in found) for s, found in records.items()} == {"fuse": 3, "tile": 1}
        assert len(records["fuse"]) == 3
        softmax = store.strategy_records([nouns.context(op_type="softmax")])
        assert {s: len(found) for s, found in softmax.items()} == {"fuse": 1}
        assert store.strategy_records(strategies=["tile"]).keys() == {"tile"}

    def test_experience_is_apart_by_parameters(self, store: Store) -> None:
        quick = {"evidence": Evidence.UNVERIFIED, "parameters": {"tile": 1, "online": True}}
        store.record_outcomes(
            [
                outcome(1, 0.5, parameters={"online": True, "tile": 1}),
                outcome(2, 0.1, **quick),
                outcome(3, 0.3, **quick),
                outcome(4, 9.0, **{**quick, "evidence": Evidence.SUSPICIOUS}),
                outcome(5, 0.2, **quick, solution="s1"),
                outcome(6, 0.7, parameters={}),
            ]
        )
        plain, tuned = sorted(store.experience()["fuse"], key=lambda r: len(r.parameters))
        assert (plain.parameters, plain.n, plain.measured) == ({}, 1, 0)
        assert (tuned.parameters, tuned.n) == ({"tile": 1, "online": True}, 1)
        assert tuned.mean_log_speedup == pytest.approx(0.5)
        assert tuned.measured == 2, "neither the suspicious one nor the solution that was verified"
        assert tuned.mean_measured_log_speedup == pytest.approx(0.2)

    def test_another_writer_was_first(self, store: Store) -> None:
        store.record_outcomes([outcome(1)])
        with store._db.write() as session:
            add_all_once(session, [outcomes._row(outcome(number)) for number in range(3)])
        assert len(store.outcomes()) == 3

    def test_all_or_none(self, store: Store) -> None:
        def broken() -> Any:
            yield outcome(1)
            raise RuntimeError("a bad line")

        with pytest.raises(RuntimeError):
            store.record_outcomes(broken())
        assert store.outcomes() == ()

    def test_strategies_without_a_card(self, store: Store) -> None:
        first = Strategy(id="new-one", title="New", summary="x")
        store.save_strategy(first)
        store.save_strategy(first.model_copy(update={"title": "Other"}))
        assert store.stored_strategies() == (first,)
