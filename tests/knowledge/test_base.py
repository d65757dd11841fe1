"""The knowledge base learns, ranks, and carries what it knows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentforge.knowledge import KnowledgeBase, doubtful, export_knowledge, import_knowledge
from agentforge.loop import RunLog
from agentforge.schema import (
    JUDGED,
    REUSED,
    BuildSpec,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    Level,
    Outcome,
    Solution,
    Strategy,
    UsageError,
)
from agentforge.store import Store
from tests.store import nouns

LATER = nouns.evaluation(nouns.solution("now")).timestamp + timedelta(days=2)


def _card(folder: Path, name: str, log: float, extra: str = "") -> None:
    head = f"id: {name}\ntitle: {name}\nsummary: s\nprior_log_speedup: {log}\n{extra}"
    (folder / f"{name}.md").write_text(f"---\n{head}\n---\n")


@pytest.fixture
def cards(tmp_path: Path) -> Path:
    folder = tmp_path / "cards"
    folder.mkdir()
    _card(folder, "fuse", 0.5, "op_types: [norm]")
    _card(folder, "tile", 0.2, "op_types: [norm, gemm]")
    _card(folder, "warp", 0.9, "devices: [cuda]\nlanguages: [cuda]")
    _card(folder, "skip", 0.1, "bounds: [compute]")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/a.db") as opened:
        yield opened


@pytest.fixture
def base(store: Store, cards: Path) -> KnowledgeBase:
    return KnowledgeBase(store, [cards], clock=lambda: LATER)


def _tries(
    base: KnowledgeBase,
    strategy: str,
    count: int,
    *,
    status: EvaluationStatus = EvaluationStatus.PASSED,
    speedup: float = 2.0,
    evidence: Evidence | None = None,
    where: str = "dram/many-rows",
) -> list[tuple[Solution, Evaluation]]:
    done = []
    for number in range(count):
        solution = nouns.solution(f"{strategy} {speedup} {status} {evidence} {number}")
        evaluation = nouns.evaluation(solution, speedup=speedup, status=status, evidence=evidence)
        base.record(strategy, nouns.context(shape_class=where), solution, evaluation, {"u": number}, "run")
        done.append((solution, evaluation))
    return done


def _ids(base: KnowledgeBase, **options: object) -> list[str]:
    return [s.id for s in base.retrieve(nouns.context(), **options)]  # type: ignore[arg-type]


def test_only_what_applies(base: KnowledgeBase) -> None:
    assert _ids(base) == ["fuse", "tile"]
    assert _ids(base, languages=("cuda", "cpp"), device="cuda") == ["warp"]
    assert _ids(base, languages=("cupy",), device="cuda") == ["warp"], "its kernels are CUDA C++"
    assert _ids(base, languages=("fortran",)) == []
    assert base.success_probability(nouns.context(), ("fortran",)) == 0.0


def test_a_second_run_starts_from_what_the_first_learned(
    base: KnowledgeBase, store: Store, cards: Path
) -> None:
    before = base.success_probability(nouns.context())
    _tries(base, "fuse", 4, status=EvaluationStatus.CRASHED)
    _tries(base, "tile", 4, speedup=3.0)
    again = KnowledgeBase(store, [cards])
    assert _ids(again) == ["tile", "fuse"]
    assert again.success_probability(nouns.context()) > before
    best = again.retrieve(nouns.context())[0].records[0]
    assert (best.n, set(best.best_parameters)) == (4, {"u"})
    assert best.mean_log_speedup == pytest.approx(math.log(3.0))


def test_similar_contexts_help(base: KnowledgeBase) -> None:
    _tries(base, "tile", 6, speedup=4.0, where="l2/few-rows")
    assert _ids(base) == ["fuse", "tile"], "much may be gained there, with the other one too"
    _tries(base, "fuse", 6, speedup=1.2, where="l2/few-rows")
    assert _ids(base) == ["tile", "fuse"]


def test_the_nearest_records_come_first(base: KnowledgeBase) -> None:
    _tries(base, "fuse", 5, where="l2/few-rows")
    _tries(base, "fuse", 1, speedup=1.5)
    records = base.retrieve(nouns.context())[0].records
    assert [r.context.shape_class for r in records] == ["dram/many-rows", "l2/few-rows"]


def test_the_same_evaluation_counts_once(base: KnowledgeBase) -> None:
    ((solution, evaluation),) = _tries(base, "fuse", 1)
    base.record("fuse", nouns.context(), solution, evaluation, {}, "another run")
    assert base.stats().outcomes == 1


def test_the_best_baseline_counts(base: KnowledgeBase) -> None:
    """`nouns.evaluation`: eager takes 2 s and compile 4 s a call, so eager is the one to beat."""
    _tries(base, "fuse", 1, speedup=2.0)
    assert base.get("fuse").records[0].mean_log_speedup == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("evidence", [Evidence.SUSPICIOUS, Evidence.UNVERIFIED])
def test_what_is_not_verified_is_no_win(base: KnowledgeBase, evidence: Evidence) -> None:
    before = base.success_probability(nouns.context())
    _tries(base, "fuse", 5, speedup=50.0, evidence=evidence)
    stats = base.stats()
    assert (stats.verified, stats.faster, stats.failures, stats.unproven) == (0, 0, 0, 5)
    assert stats.geometric_mean_speedup is None
    after = base.success_probability(nouns.context())
    assert after < before if evidence is Evidence.SUSPICIOUS else after == before


def test_slow_without_being_verified_counts_against(base: KnowledgeBase) -> None:
    _tries(base, "fuse", 5, speedup=0.7, evidence=Evidence.UNVERIFIED)
    assert _ids(base) == ["tile", "fuse"]


def test_cheating_is_a_failure_and_a_slower_result_is_not(base: KnowledgeBase) -> None:
    _tries(base, "fuse", 2, status=EvaluationStatus.CHEATING)
    _tries(base, "fuse", 3, speedup=0.5)
    stats = base.stats()
    assert (stats.failures, stats.cheating, stats.verified, stats.faster) == (2, 2, 3, 0)
    assert stats.geometric_mean_speedup == pytest.approx(0.5)


def test_what_says_nothing_about_a_solution_is_not_kept(base: KnowledgeBase, store: Store) -> None:
    for status in (EvaluationStatus.HARNESS_ERROR, EvaluationStatus.UNSUPPORTED):
        _tries(base, "fuse", 2, status=status)
    assert store.outcomes() == ()


def test_a_new_slug_becomes_a_strategy(base: KnowledgeBase) -> None:
    _tries(base, "split-the-rows", 2)
    found = base.get("split-the-rows")
    assert (found.op_types, found.languages, found.devices) == (("norm",), ("cpp",), ("cpu",))
    assert "split-the-rows" in _ids(base)


def test_a_strategy_without_a_card_applies_wherever_it_was_tried(base: KnowledgeBase) -> None:
    _tries(base, "split-the-rows", 2)
    elsewhere = nouns.context(op_type="gemm", architecture="sm_90")
    written = nouns.solution("in triton", spec=BuildSpec(language="triton"))
    base.record("split-the-rows", elsewhere, written, nouns.evaluation(written), {}, "run")
    found = base.get("split-the-rows")
    assert (found.op_types, found.languages, found.devices) == (
        ("norm", "gemm"),
        ("cpp", "triton"),
        ("cpu", "cuda"),
    )
    assert "split-the-rows" in [s.id for s in base.retrieve(elsewhere, ("triton",), "cuda")]
    assert "split-the-rows" in _ids(base)


def test_no_such_strategy(base: KnowledgeBase) -> None:
    with pytest.raises(UsageError, match="kb list"):
        base.get("nothing")


def test_own_cards_come_first(store: Store, cards: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    _card(own, "fuse", 0.05, "op_types: [norm]")
    assert _ids(KnowledgeBase(store, [cards, own])) == ["tile", "fuse"]


class TestTransfer:
    def test_there_and_twice(self, base: KnowledgeBase, store: Store, tmp_path: Path) -> None:
        _tries(base, "fuse", 3)
        _tries(base, "new-slug", 2, status=EvaluationStatus.TIMEOUT)
        file = tmp_path / "k.jsonl"
        done = export_knowledge(base, store, file)
        assert (done.strategies, done.outcomes) == (5, 5)
        with Store(f"sqlite:///{tmp_path}/b.db") as other:
            assert import_knowledge(other, file).outcomes == 5
            again = import_knowledge(other, file)
            assert (again.outcomes, again.known) == (0, 5)
            carried = KnowledgeBase(other, [])
            stats = carried.stats()
            assert (stats.outcomes, stats.claimed) == (5, 5)
            assert (stats.contexts, stats.verified, stats.failures, stats.unproven) == (0, 0, 0, 0)
            assert {s.id for s in carried.strategies()} == {s.id for s in base.strategies()}
            assert all(s.claimed for s in carried.strategies())
            assert [r.claims for r in carried.get("fuse").records] == [3]
        assert import_knowledge(store, file) == replace(done, outcomes=0, known=5), (
            "its own file says nothing new"
        )

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("{", "line 3: no JSON"),
            ("[]", "line 3: none of strategy"),
            pytest.param("[" * 100_000, "line 3: no JSON", id="lists without end"),
            ('{"strategy": {"id": "x", "title": "\\ud800", "summary": "s"}}', "line 3: no JSON"),
            (
                '{"strategy": {"id": "x", "title": "t", "summary": "s", "prior_log_speedup": 1e9}}',
                "prior_log",
            ),
            ('{"outcome": {"id": "x"}}', "line 3: field"),
            ('{"strategy": {"id": "x", "title": "t", "summary": "s", "colour": 1}}', "'colour'"),
            ('{"strategy": 1, "outcome": 2}', "none of strategy"),
        ],
    )
    def test_a_bad_line_changes_nothing(
        self, base: KnowledgeBase, store: Store, tmp_path: Path, line: str, words: str
    ) -> None:
        file = tmp_path / "k.jsonl"
        export_knowledge(base, store, file)
        head, first, *rest = file.read_text().splitlines()
        file.write_text("\n".join([head, first, line, *rest]))
        with Store(f"sqlite:///{tmp_path}/b.db") as other:
            with pytest.raises(UsageError, match=words):
                import_knowledge(other, file)
            assert other.stored_strategies() == ()

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "no knowledge file"),
            (b"\xff\xfe", "not text"),
            (b'{"format": "other"}', "no knowledge file"),
            (b'{"format": "agentforge-knowledge", "version": 99}', "upgrade"),
        ],
    )
    def test_another_file(self, store: Store, tmp_path: Path, content: bytes, words: str) -> None:
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(UsageError, match=words):
            import_knowledge(store, tmp_path / "x")
        with pytest.raises(UsageError, match="cannot be read"):
            import_knowledge(store, tmp_path / "nothing")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            pytest.param("context.operators", [["reduction", 10**400]], id="operators"),
            pytest.param("context.intensity", -(10**400), id="intensity"),
            ("time", "0001-01-01T00:00:00+14:00"),
            ("log_speedup", math.inf),
        ],
    )
    def test_a_number_that_no_look_up_could_use(
        self, base: KnowledgeBase, store: Store, tmp_path: Path, field: str, value: object
    ) -> None:
        _tries(base, "fuse", 1)
        (told,) = [outcome.model_dump(mode="json") for outcome in store.outcomes()]
        noun, _, name = field.rpartition(".")
        (told[noun] if noun else told)[name] = value
        head = '{"format": "agentforge-knowledge", "version": 2}\n'
        (tmp_path / "odd.jsonl").write_text(head + json.dumps({"outcome": told}))
        with pytest.raises(UsageError, match=f"line 2: field '{field}"):
            import_knowledge(store, tmp_path / "odd.jsonl")

    def test_a_time_without_a_zone_is_in_utc(self, base: KnowledgeBase, store: Store) -> None:
        _tries(base, "fuse", 1)
        told = store.outcomes()[0].model_dump(mode="json") | {"time": "2026-01-02T03:04:05"}
        assert Outcome.model_validate(told).time == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def test_a_folder_that_is_not_there(self, base: KnowledgeBase, store: Store, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot be written"):
            export_knowledge(base, store, tmp_path / "nothing" / "k.jsonl")
        for folder in ("/", "."):
            with pytest.raises(UsageError, match="name a file"):
                export_knowledge(base, store, Path(folder))


def test_a_verdict_on_other_words_for_the_same_machine_code_counts_in_its_own_run_alone(
    base: KnowledgeBase,
) -> None:
    [(solution, before)] = _tries(base, "fuse", 1, evidence=Evidence.VERIFIED)
    notes = {REUSED: "evaluation x of run y (the same machine code)"}
    copy = before.model_copy(update={"environment": before.environment.model_copy(update={"notes": notes})})
    base.record("fuse", nouns.context(), solution, copy, {}, "later")
    assert base.stats().outcomes == 1


def test_a_verdict_that_its_own_run_never_recorded_counts_once_where_it_is_taken(
    base: KnowledgeBase, store: Store
) -> None:
    """The first run was killed before it recorded it."""
    solution = nouns.solution("now")
    asked = nouns.definition(), [nouns.workload()], solution, Level.FULL
    measured = nouns.evaluation(solution)
    logs = []
    for name in ("first", "later"):
        store.create_run(nouns.run(name, device="null device"))
        logs.append(RunLog(store, store.get_run(name), conditions="here"))
    logs[0].put_evaluation(measured, logs[0].conditions(*asked[:2]))
    found = logs[1].finished_evaluation(*asked)
    assert found is not None and found[1].reused
    for name, evaluation in (("later", found[1]), ("first", measured)):
        base.record("fuse", nouns.context(), solution, evaluation, {}, name)
        assert base.stats().outcomes == base.stats().verified == 1
    assert doubtful(store) == ()


def test_a_lesson_rests_on_a_verified_evaluation(base: KnowledgeBase, store: Store, tmp_path: Path) -> None:
    [(_, proven)] = _tries(base, "fuse", 1, evidence=Evidence.VERIFIED)
    [(_, unproven)] = _tries(base, "fuse", 1, evidence=Evidence.UNVERIFIED, speedup=9.0)
    for evaluation in (proven, unproven):
        store.save_evaluation(evaluation)
    first = base.learn("fuse", nouns.context(), proven, "Rows fit in L1:\n keep them there.", author="me")
    again = base.learn("fuse", nouns.context(), proven, "Rows fit in L1: keep them there.", author="me")
    assert first == again
    assert [lesson.text for lesson in base.get("fuse").lessons] == ["Rows fit in L1: keep them there."]
    assert base.retrieve(nouns.context())[0].lessons == (first,)
    with pytest.raises(UsageError, match="verified"):
        base.learn("fuse", nouns.context(), unproven, "Nine times as fast!", author="me")
    forged = unproven.model_copy(update={"evidence": Evidence.VERIFIED})
    with pytest.raises(UsageError):
        base.learn("fuse", nouns.context(), forged, "Nine times as fast!", author="me")
    with pytest.raises(UsageError, match="no strategy"):
        base.learn("magic", nouns.context(), proven, "It works.", author="me")
    with pytest.raises(UsageError, match="empty"):
        base.learn("fuse", nouns.context(), proven, "  ", author="me")
    export_knowledge(base, store, tmp_path / "knowledge.jsonl")
    with Store(f"sqlite:///{tmp_path}/other.db") as other:
        import_knowledge(other, tmp_path / "knowledge.jsonl")
        (carried,) = other.lessons()["fuse"]
        assert (carried.text, carried.claimed) == (first.text, True)
        assert KnowledgeBase(other, []).get("fuse").lessons == ()


def _record_after(base: KnowledgeBase, strategy: str, parent: str, before: float, speedup: float) -> None:
    below = nouns.evaluation(nouns.solution(f"{parent} {before}"), speedup=before)
    solution = nouns.solution(f"{strategy} after {parent} {before} {speedup}")
    evaluation = nouns.evaluation(solution, speedup=speedup)
    base.record(strategy, nouns.context(), solution, evaluation, parent=(parent, below))


def test_a_follow_up_is_not_paid_for_what_came_before_it(base: KnowledgeBase, store: Store) -> None:
    for number in range(4):
        _tries(base, "fuse", 1, speedup=3.0 + number / 100)
        _record_after(base, "tile", "fuse", 3.0 + number / 100, 3.1 + number / 100)
    assert _ids(base) == ["fuse", "tile"]
    (follow_up, *_) = store.outcomes("tile")
    assert follow_up.after == "fuse"
    assert math.exp(follow_up.log_gain or 0.0) == pytest.approx(1.033, abs=0.001)
    assert math.exp(follow_up.log_speedup or 0.0) == pytest.approx(3.1, abs=0.05)


def _timed(speed: float, *, compiled: float | None = None, inside: bool = False) -> Evaluation:
    """A verified verdict; `compiled` is torch.compile's speed over eager, None if it was not measured."""
    over = {"eager": speed} if compiled is None else {"eager": speed, "compile": speed / compiled}
    about = {name: Interval(point=x, low=x, high=x) for name, x in over.items()}
    solution = nouns.solution(f"{speed} {compiled} {inside}")
    found = nouns.evaluation(solution, performance=nouns.performance(baseline_s=over, speedup=about))
    notes = {JUDGED: "inside the model"} if inside else {}
    environment = found.environment.model_copy(update={"notes": notes})
    return found.model_copy(update={"environment": environment})


@pytest.mark.parametrize(
    ("before", "after", "gain"),
    [
        (_timed(1.7), _timed(2.1, compiled=2.0), 2.1 / 1.7),
        (_timed(1.7, compiled=2.0), _timed(2.1, compiled=1.5), 2.1 / 1.7),
        (_timed(1.7), _timed(2.1, compiled=2.0, inside=True), None),
        (_timed(1.7, inside=True), _timed(2.1, inside=True), 2.1 / 1.7),
    ],
)
def test_a_follow_up_gains_over_the_baseline_that_both_were_measured_against(
    base: KnowledgeBase, store: Store, before: Evaluation, after: Evaluation, gain: float | None
) -> None:
    solution = nouns.solution("after")
    after = after.model_copy(update={"solution": solution.hash})
    base.record("tile", nouns.context(), solution, after, parent=("fuse", before))
    (kept,) = store.outcomes("tile")
    assert kept.after == "fuse"
    assert (kept.log_gain is None) == (gain is None)
    assert math.exp(kept.log_gain or 0.0) == pytest.approx(gain or 1.0)


def test_a_pair_is_learned(base: KnowledgeBase) -> None:
    for number in range(6):
        _record_after(base, "tile", "fuse", 2.0 + number / 100, 3.0 + number / 100)
        _record_after(base, "tile", "skip", 2.0 + number / 100, 1.9 + number / 100)
    (_, paired), (_, alone) = (
        next(pair for pair in base.ranked(nouns.context(), after=after) if pair[0].id == "tile")
        for after in ("fuse", "skip")
    )
    assert paired.value > 1.5 * alone.value > 0


@pytest.mark.parametrize("status", [EvaluationStatus.PASSED, EvaluationStatus.CRASHED])
def test_tuning_and_repair_count_as_a_first_attempt(
    base: KnowledgeBase, store: Store, status: EvaluationStatus
) -> None:
    """A value of the strategy's own parameter, or a repair of what never ran, is no second strategy."""
    parent = "fuse" if status is EvaluationStatus.PASSED else "tile"
    below = nouns.evaluation(nouns.solution("before"), speedup=2.0, status=status)
    solution = nouns.solution("after")
    base.record("fuse", nouns.context(), solution, nouns.evaluation(solution), parent=(parent, below))
    (kept,) = store.outcomes("fuse")
    assert (kept.after, kept.log_gain) == ("", None)
    assert kept.credit == kept.log_speedup


def test_kernels_of_an_older_generator_weigh_less(base: KnowledgeBase, store: Store) -> None:
    solution = nouns.solution("generated").model_copy(update={"author": "playbook"})
    base.record("fuse", nouns.context(), solution, nouns.evaluation(solution, speedup=4.0))
    (kept,) = store.outcomes("fuse")
    assert len(kept.generator) == 16
    ((_, now), *_) = base.ranked(nouns.context())
    store.remove_outcomes([kept.id])
    store.record_outcomes([kept.model_copy(update={"id": "older", "generator": "0" * 16})])
    ((_, later), *_) = base.ranked(nouns.context())
    assert later.mu < now.mu


def test_a_follow_up_has_a_credit_of_its_own(base: KnowledgeBase) -> None:
    first, then = nouns.solution("first"), nouns.solution("then")
    before = nouns.evaluation(first, speedup=2.0)
    base.record("fuse", nouns.context(), first, before)
    for number, (after, speedup) in enumerate((("fuse", 2.2), ("fuse", 2.2), ("stream", 3.0))):
        evaluation = nouns.evaluation(then, speedup=speedup, after_s=number)
        base.record("tile", nouns.context(), then, evaluation, parent=(after, before))
    (record,) = base.get("tile").records
    assert record.mean_log_speedup == pytest.approx(math.log(2.2 * 2.2 * 3) / 3)
    assert record.mean_credit == pytest.approx(math.log(1.1 * 1.1 * 1.5) / 3)
    assert base.get("fuse").records[0].mean_credit == pytest.approx(math.log(2.0)), "it was built on nothing"
    assert [(pair.after, pair.n) for pair in base.pair_gains("tile")] == [("stream", 1), ("fuse", 2)]
    assert [pair.gain for pair in base.pair_gains("tile")] == pytest.approx([1.5, 1.1])
    assert base.pair_gains("fuse") == ()


def test_contexts_are_counted_once_and_claims_not_at_all(base: KnowledgeBase, store: Store) -> None:
    cards = base.stats().strategies
    for name in ("fuse", "tile"):
        _tries(base, name, 1)
        _tries(base, name, 1, speedup=3.0, where="l2/few-rows")
    claimed = Strategy(id="claimed", title="c", summary="s", claimed=True)
    (one, *_) = store.outcomes()
    elsewhere = {"id": "c", "strategy": "claimed", "claimed": True, "context": nouns.context(dtype="d")}
    store.add_knowledge([claimed], [], [one.model_copy(update=elsewhere)])
    assert (base.stats().contexts, base.stats().strategies) == (2, cards)
    assert base.stats().claimed == 1
