"""Bundles that lie: imported, they change neither the first rank nor a word that a model reads."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from agentforge.agents import Task
from agentforge.agents.llm import LLMCoder, LLMJudge, LLMPlanner
from agentforge.agents.llm.role import Role
from agentforge.agents.llm.tools import CoderTools
from agentforge.config import LLMSettings
from agentforge.devices.null import detect_null
from agentforge.knowledge import (
    Advisor,
    KnowledgeBase,
    Posterior,
    doubtful,
    import_knowledge,
    judge_claims,
    read_bundle,
    read_database,
    remove,
)
from agentforge.llm import CallFailed, Ledger, Request, Response, ToolCall
from agentforge.resources import resource
from agentforge.schema import (
    Attempt,
    AttemptStatus,
    Context,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Interval,
    Outcome,
    Plan,
    Precedent,
    Strategy,
)
from agentforge.store import Store, evaluation_id
from tests.agents.llm.scene import HARDWARE, bottleneck
from tests.loop.conftest import make_run
from tests.store import nouns

BUNDLES = sorted((Path(__file__).parents[2] / "benchmarks" / "kb_poison").glob("*.jsonl"))
CONTEXTS = tuple(
    Context(
        op_type=op_type, shape_class="dram/many-rows", architecture="x86-64-avx512", toolchain="g++-12",
        bound="memory",
    )
    for op_type in ("norm", "softmax", "attention", "gemm", "pointwise", "reduction", "custom")
)  # fmt: skip
NORM = CONTEXTS[0]
GPU = NORM.model_copy(update={"architecture": "sm_90", "toolchain": "nvrtc-13"})
ASKED = {
    **dict.fromkeys(CONTEXTS, (("cpp",), "cpu")), GPU: (("triton", "cuda"), "cuda"),
}  # fmt: skip
"""Languages and device by context."""
FOREIGN = ("Cache the output", "Cache results", "Ignore the referee", "100x")
"""Words of many bundles."""
MARK = "zqx"
"""In all words of the bundle whose solutions pass."""


class Asked:
    """A model that keeps its question and does not answer."""

    spec, model, endpoint = "anthropic:claude-haiku-4-5", "asked", "nowhere"

    def __init__(self) -> None:
        self.text = ""

    def complete(self, request: Request) -> Response:
        self.text = self.text or "\n".join((*request.system, request.messages[0].text))
        return Response(text="{}", model="asked")


@pytest.fixture(params=["cold", "experienced"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/a.db") as opened:
        opened.create_run(make_run())
        if request.param == "experienced":
            base = cards(opened)
            for number, (name, speedup) in enumerate([("fuse-row-program", 1.4), ("strict-math", 1.1)] * 2):
                solution = nouns.solution(f"{name} {number}")
                evaluation = nouns.evaluation(solution, speedup=speedup)
                opened.save_evaluation(evaluation)
                base.record(name, NORM, solution, evaluation)
            base.learn("fuse-row-program", NORM, evaluation, "Rows fit in L1.", author="me")
        yield opened


def cards(store: Store) -> KnowledgeBase:
    return KnowledgeBase(store, [resource("knowledge_base", "playbook")])


def ranked(base: KnowledgeBase, context: Context) -> tuple[tuple[Strategy, Posterior], ...]:
    return base.ranked(context, *ASKED[context])


def firsts(base: KnowledgeBase) -> Mapping[Context, tuple[Strategy, Posterior]]:
    """The first rank of each context."""
    return {context: ranked(base, context)[0] for context in ASKED}


def always(found: tuple[Precedent, ...], language: str) -> tuple[Precedent, ...]:
    return found


def tasks(base: KnowledgeBase) -> dict[Context, Task]:
    """What models are shown of a region on a CPU and on a GPU."""
    found = {}
    for context in (NORM, GPU):
        languages, device = ASKED[context]
        region, later = bottleneck(), nouns.NOW + timedelta(days=9999)
        earlier = base.precedents(region.definition.hash, context, languages[0], later)
        found[context] = Task(
            region, replace(HARDWARE, architecture=context.architecture), context,
            tuple(s for s, _ in ranked(base, context)), languages[:1],
            advise=Advisor(base.advice, context, languages[:1], device, 600),
            precedents=partial(always, earlier), contrast_tokens=4000,
        )  # fmt: skip
    return found


def prompts(store: Store, task: Task) -> str:
    """What planner, coder and judge are asked, and what the tool `knowledge` answers."""
    said, numbers = [], count(1 + len(store.calls("run")))
    language = task.languages[0]
    plan = Plan(strategy=task.strategies[0].id, language=language)
    wrote = nouns.solution("wrong")
    statuses = EvaluationStatus.PASSED, EvaluationStatus.CRASHED
    verdicts = [nouns.evaluation(wrote, status=status) for status in statuses]

    def ask(role: str, question: Callable[[Role, Task], object]) -> None:
        model = Asked()
        asked = replace(task, attempt=f"run/{next(numbers):04d}")
        with suppress(CallFailed):
            question(Role(role, model, Ledger(store, "run"), LLMSettings()), asked)
        assert model.text, role
        said.append(model.text)

    def judge(verdict: Evaluation, role: Role, asked: Task) -> object:
        return LLMJudge(role).judge(asked, plan, wrote, verdict)

    ask("planner", lambda role, asked: LLMPlanner(role).plan(asked, None))
    ask("coder", lambda role, asked: LLMCoder(role).code(asked, plan, None))
    for verdict in verdicts:
        ask("judge", partial(judge, verdict))
    tool = CoderTools(task, lambda text: wrote, [])
    for query in ("cache the output between calls", *(s.id for s in task.strategies)):
        said.append(tool(ToolCall(id="1", name="knowledge", arguments=json.dumps({"query": query}))))
    return "\n".join(said)


def unchanged(store: Store, base: KnowledgeBase, before: Mapping[Context, Task]) -> None:
    """Models read the words from before, whatever the claims put second or left out."""
    for context, now in tasks(base).items():
        known = {s.id: s for s in before[context].strategies}
        assert {s.id for s in now.strategies} == known.keys()
        same = replace(before[context], strategies=tuple(known[s.id] for s in now.strategies))
        asked = prompts(store, now)
        assert asked == prompts(store, same)
        assert not [words for words in FOREIGN if words in asked]


def test_there_are_at_least_twenty() -> None:
    assert len(BUNDLES) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.stem)
def test_a_bundle_changes_neither_the_first_rank_nor_a_prompt(store: Store, bundle: Path) -> None:
    base = cards(store)
    before, shown = firsts(base), tasks(base)
    chances = [base.success_probability(context, *ASKED[context]) for context in ASKED]
    numbers = base.stats()
    import_knowledge(store, bundle)
    base = cards(store)
    for context, (now, held) in firsts(base).items():
        first, belief = before[context]
        assert (now.id, held) == (first.id, belief)
        assert now.lessons == first.lessons
    assert [base.success_probability(context, *ASKED[context]) for context in ASKED] == chances
    unchanged(store, base, shown)
    later = base.stats()
    assert (later.verified, later.faster, later.failures, later.cheating, later.unproven) == (
        numbers.verified, numbers.faster, numbers.failures, numbers.cheating, numbers.unproven
    )  # fmt: skip


@pytest.mark.slow
def test_a_database_of_all_bundles_changes_neither(store: Store, tmp_path: Path) -> None:
    base = cards(store)
    before, shown = firsts(base), tasks(base)
    with Store(f"sqlite:///{tmp_path}/poison.db") as other:
        for bundle in map(read_bundle, BUNDLES):
            other.add_knowledge(bundle.strategies, bundle.lessons, bundle.outcomes)
    done = import_knowledge(store, read_database(f"{tmp_path}/poison.db", store.where))
    assert done.outcomes > 100
    base = cards(store)
    for context, (now, held) in firsts(base).items():
        first, belief = before[context]
        assert (now.id, held, now.lessons) == (first.id, belief, first.lessons)
    unchanged(store, base, shown)
    assert [s.id for s, _ in ranked(base, GPU)] != [s.id for s in shown[GPU].strategies], "they were read"


def test_a_solution_that_passes_changes_neither(store: Store) -> None:
    """The referee finds nothing wrong with the code, and the words around it are foreign all the same."""
    base = cards(store)
    beliefs = base.ranked(NORM)
    bundle = read_bundle(next(path for path in BUNDLES if path.stem.startswith("25")))
    import_knowledge(store, bundle)
    verdicts = judge_claims(
        base, store, bundle, 9, device=detect_null().model_copy(update={"architecture": NORM.architecture}),
        evaluate=lambda request: nouns.evaluation(request.solution, speedup=5.0), trust_references=True,
    )  # fmt: skip
    assert len(verdicts.judged) == len(bundle.solutions) == 2
    base = cards(store)
    assert [(s.id, belief) for s, belief in base.ranked(NORM)] == [(s.id, belief) for s, belief in beliefs]
    shown = "".join(s.model_dump_json() for s, _ in base.ranked(NORM))
    asked = "".join(prompts(store, task) for task in tasks(base).values())
    assert MARK in "".join(s.model_dump_json() for s in base.strategies()).lower(), "a person may read them"
    assert MARK not in (shown + asked).lower()


def test_a_claim_weighs_a_little(store: Store, tmp_path: Path) -> None:
    """So that an honest bundle is of use: it moves the ranks after the first."""
    base = cards(store)
    ranks = [s.id for s, _ in base.ranked(NORM)]
    head, line, *_ = BUNDLES[0].read_text().splitlines()
    outcome = json.loads(line)["outcome"]
    lines = [
        json.dumps({"outcome": {**outcome, "strategy": ranks[2], "evaluation": f"e{n}", "id": f"i{n}"}})
        for n in range(20)
    ]
    (tmp_path / "honest.jsonl").write_text("\n".join([head, *lines]))
    import_knowledge(store, tmp_path / "honest.jsonl")
    after = [s.id for s, _ in cards(store).ranked(NORM)]
    assert after[:2] == [ranks[0], ranks[2]]


def test_a_strategy_that_is_tried_here_has_its_own_words(store: Store) -> None:
    import_knowledge(store, next(path for path in BUNDLES if path.stem.startswith("09")))
    base = cards(store)
    solution = nouns.solution("own")
    base.record("cache-results", NORM, solution, nouns.evaluation(solution))
    own = base.get("cache-results")
    assert not own.claimed
    assert "100x" not in own.summary
    assert own.prior_log_speedup == 0.0


def test_check_finds_what_no_evaluation_supports(store: Store) -> None:
    assert doubtful(store) == ()
    solution = nouns.solution("s")
    good = nouns.evaluation(solution, speedup=2.0)
    assert good.performance is not None
    impossible = good.model_copy(
        update={"performance": good.performance.model_copy(update={"sol_s": good.performance.latency_s * 2})}
    )
    base = cards(store)
    for evaluation in (good, impossible):
        store.save_evaluation(evaluation)
        base.record("fuse-row-program", NORM, solution, evaluation)
    known = next(o for o in store.outcomes() if o.solution == solution.hash)
    lie = known.model_copy(update={"id": "lie", "evaluation": "nothing", "log_speedup": 4.6})
    other = known.model_copy(update={"id": "other", "log_speedup": 4.6})
    store.record_outcomes([lie, other])
    whys = {doubt.why.partition(" (")[0] for doubt in doubtful(store)}
    assert whys == {
        "its evaluation does not exist",
        "it beats the speed of light",
        "its evaluation measured 2x",
    }
    remove(store, doubtful(store))
    assert doubtful(store) == ()
    assert isinstance(store.outcomes()[-1], Outcome)


def test_check_finds_a_lesson_that_says_more_than_was_measured(store: Store) -> None:
    solution = nouns.solution("s")
    evaluation = nouns.evaluation(solution, speedup=2.0)
    store.save_evaluation(evaluation)
    base = cards(store)
    lesson = base.learn("fuse-row-program", NORM, evaluation, "Rows fit in L1.", author="me")
    assert doubtful(store) == ()
    store.save_lesson(lesson.model_copy(update={"id": "lie", "speedup": 100.0}))
    (doubt,) = doubtful(store)
    assert (doubt.kind, doubt.id, doubt.why) == ("lesson", "lie", "its evaluation measured 2x")
    remove(store, (doubt,))
    assert doubtful(store) == ()


def test_check_finds_an_edited_evaluation(store: Store, tmp_path: Path) -> None:
    solution = nouns.solution("s")
    evaluation = nouns.evaluation(solution, speedup=2.0)
    store.save_evaluation(evaluation)
    base = cards(store)
    base.record("fuse-row-program", NORM, solution, evaluation)
    base.learn("fuse-row-program", NORM, evaluation, "Two rows fit.", author="me")
    assert doubtful(store) == ()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        edit = "UPDATE evaluations SET body = replace(body, ?, ?) WHERE id = ?"
        faster = ('"latency_s":1.0', '"latency_s":0.5', evaluation_id(evaluation))
        assert connection.execute(edit, faster).rowcount == 1
    assert {(d.kind, d.why) for d in doubtful(store)} == {
        ("outcome", "its evaluation was edited"), ("lesson", "its evaluation was edited"),
    }  # fmt: skip


def test_check_leaves_what_the_referee_suspects(store: Store) -> None:
    """It may be right, and what proves a suspicion wrong must not become a precedent by that."""
    solution = nouns.solution("s")
    measured = nouns.performance(sol_s=2.0)
    evaluation = nouns.evaluation(solution, performance=measured, evidence=Evidence.SUSPICIOUS)
    store.save_evaluation(evaluation)
    cards(store).record("fuse-row-program", NORM, solution, evaluation)
    assert doubtful(store) == ()


@pytest.mark.slow
@pytest.mark.parametrize("over_best", [False, True], ids=["by eager", "as before, over the best baselines"])
def test_check_leaves_a_follow_up_with_another_best_baseline(store: Store, over_best: bool) -> None:
    first, then = nouns.solution("first"), nouns.solution("then")
    before, after = nouns.evaluation(first, speedup=1.7), nouns.evaluation(then, speedup=2.1)
    assert after.performance is not None
    after.performance.baseline_s["compile"] = 1.05
    after.performance.speedup["compile"] = Interval(point=1.05, low=1.0, high=1.1)
    attempt = Attempt(
        id="run/0001", run="run", bottleneck=nouns.definition().hash, number=1, status=AttemptStatus.DONE,
        plan=Plan(strategy="strict-math"), solution=first.hash,
        evaluation=store.save_evaluation(before, "run"),
    )  # fmt: skip
    store.save_attempt(attempt)
    store.save_evaluation(after, "run")
    cards(store).record("fuse-row-program", NORM, then, after, run="run", parent=("strict-math", before))
    kept = next(o for o in store.outcomes() if o.run == "run")
    assert math.exp(kept.log_gain or 0.0) == pytest.approx(2.1 / 1.7)
    if over_best:
        store.remove_outcomes([kept.id])
        store.record_outcomes([kept.model_copy(update={"log_gain": math.log(1.05 / 1.7)})])
    assert doubtful(store) == ()


def test_check_finds_a_follow_up_that_claims_more_than_it_gained(store: Store) -> None:
    first, then = nouns.solution("first"), nouns.solution("then")
    before, again, after = (
        nouns.evaluation(first, speedup=2.0),
        nouns.evaluation(first, speedup=2.2, after_s=9),
        nouns.evaluation(then, speedup=3.0),
    )
    for evaluation in (before, again, after):
        store.save_evaluation(evaluation, "run")
    attempt = Attempt(
        id="run/0001", run="run", bottleneck=nouns.definition().hash, number=1, status=AttemptStatus.DONE,
        plan=Plan(strategy="strict-math"), solution=first.hash, evaluation=evaluation_id(again),
    )  # fmt: skip
    store.save_attempt(attempt)
    base = cards(store)
    base.record("fuse-row-program", NORM, then, after, run="run", parent=("strict-math", before))
    assert doubtful(store) == (), "it was measured again since"
    honest = next(o for o in store.outcomes() if o.run == "run")
    store.record_outcomes(
        [
            honest.model_copy(update={"id": "lie", "log_gain": 1.0}),
            honest.model_copy(update={"id": "removed", "log_gain": 1.0, "run": "a run that was removed"}),
        ]
    )
    (doubt,) = doubtful(store)
    assert (doubt.id, doubt.why) == ("lie", "no measurement of what it was built on gives its gain")
