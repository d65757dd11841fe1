"""Standing: what follows from the attempts alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentforge.config import SearchSettings
from agentforge.loop.bottleneck_state import (
    BottleneckState,
    costs_of,
    faster_than_eager,
    gain_over_eager,
    unsteady,
)
from agentforge.loop.run_log import settled
from agentforge.schema import (
    REUSED,
    Attempt,
    AttemptStatus,
    Critique,
    Environment,
    Evaluation,
    EvaluationStatus,
    Evidence,
    Level,
    Plan,
    ReasonCode,
    Usage,
)
from agentforge.search import Node

from .scripted import bottleneck, performance

SETTINGS = SearchSettings()


def measured(
    speed: float, *, compiled: float = 1.0, verified: bool = True, spread: float = 0.01, busy: bool = False
) -> Evaluation:
    return Evaluation(
        definition="d",
        solution="s",
        workloads=("w",),
        level=Level.FULL,
        status=EvaluationStatus.PASSED,
        evidence=Evidence.VERIFIED if verified and not busy else Evidence.UNVERIFIED,
        reasons=("one baseline in two processes differs",) if busy else (),
        codes=(ReasonCode.NOISY_CONTROL,) if busy else (),
        performance=performance(speed, compiled, spread),
        environment=Environment(device="d", architecture="a", toolchain={}),
        timestamp=datetime.now(UTC),
    )


def broken() -> Evaluation:
    failed = {"status": EvaluationStatus.COMPILE_ERROR, "evidence": Evidence.UNVERIFIED, "performance": None}
    return measured(1.0).model_copy(update=failed)


def bottleneck_state(
    *evaluations: Evaluation | None, verdict: str = "optimize", **changes: object
) -> BottleneckState:
    attempts = tuple(
        Attempt(
            id=str(number),
            run="r",
            bottleneck="b",
            parent=str(number - 1) if number > 1 else None,
            number=number,
            status=AttemptStatus.DONE if evaluation else AttemptStatus.FAILED,
            evaluation="e" if evaluation else None,
            critique=Critique(kind=verdict) if evaluation else None,  # type: ignore[arg-type]
        )
        for number, evaluation in enumerate(evaluations, start=1)
    )
    found = {a.id: e for a, e in zip(attempts, evaluations, strict=True) if e}
    return BottleneckState(bottleneck("a", **changes), attempts, found)


def test_eager_holds_at_first() -> None:
    fresh = bottleneck_state()
    assert (fresh.incumbent, fresh.speedup, fresh.time_s) == (None, 1.0, 1.0)


def test_the_incumbent_is_the_fastest_verified() -> None:
    found = bottleneck_state(measured(2.0), measured(4.0), measured(3.0), measured(9.0, verified=False))
    assert found.incumbent is not None
    assert found.incumbent[0].number == 2
    assert found.time_s == pytest.approx(0.25)
    assert [a.number for a, _ in found.promotions] == [1, 2]


def test_an_interval_that_reaches_one_is_no_win() -> None:
    assert not faster_than_eager(measured(1.05, spread=0.1))
    assert bottleneck_state(measured(1.05, spread=0.1)).incumbent is None


def test_promising_means_faster_than_what_holds() -> None:
    assert bottleneck_state().promising(measured(1.1, verified=False))
    assert not bottleneck_state().promising(measured(0.9, verified=False))
    assert not bottleneck_state(measured(2.0)).promising(measured(1.5, verified=False))
    assert bottleneck_state(measured(2.0)).promising(measured(2.5, verified=False))


def test_gains_are_over_the_named_baseline() -> None:
    fast = measured(3.0, compiled=2.0)
    assert gain_over_eager(fast) == 3.0
    assert bottleneck_state(fast).best_baseline.speedup(fast) == pytest.approx(1.5)
    assert gain_over_eager(None) is None


def test_since_gain_counts_a_timed_attempt_whole_and_a_failure_a_third() -> None:
    weight, made = bottleneck_state(measured(2.0), measured(1.0), None, broken()).since_gain()
    assert (weight, made) == (pytest.approx(1 + 2 / 3), 3)


def test_what_will_be_measured_again_says_nothing_yet() -> None:
    waiting = bottleneck_state(measured(3.0, busy=True), measured(2.0, busy=True), measured(0.9, busy=True))
    assert [a.number for a in waiting.contenders()] == [1, 2, 3]
    assert waiting.since_gain() == (0, 3)
    assert waiting.contenders(0) == ()


def test_with_an_incumbent_only_what_may_be_faster_is_measured_again() -> None:
    slow, wide = measured(1.9, busy=True), measured(1.9, busy=True, spread=0.5)
    assert [a.number for a in bottleneck_state(measured(2.0), slow, wide).contenders()] == [3]


def test_an_accept_closes_unless_the_attempt_is_slower_and_will_not_be_measured_again() -> None:
    def closed(*evaluations: Evaluation) -> bool:
        state = bottleneck_state(*evaluations, verdict="accept", sol_s=1e-6)
        accepted = Critique(kind="accept", closes=True)
        attempts = tuple(a.model_copy(update={"critique": accepted}) for a in state.attempts)
        return "judge" in replace(state, attempts=attempts).closed(SETTINGS)

    wide = measured(0.8, spread=0.5)
    assert closed(measured(2.0))
    assert not closed(measured(0.8))
    assert not closed(wide.model_copy(update={"level": Level.QUICK, "evidence": Evidence.UNVERIFIED}))
    assert closed(measured(0.8, spread=0.5, busy=True)), "it is measured again first"


def test_an_accept_of_an_attempt_that_eager_alone_was_measured_beside_is_compared_on_the_same_scale() -> None:
    """1.7x over eager is slower than torch.compile, which is 1.9 times as fast."""
    quick, full = measured(1.7, verified=False), measured(1.8, compiled=1.9)
    assert quick.performance is not None
    del quick.performance.baseline_s["compile"], quick.performance.speedup["compile"]
    state = bottleneck_state(quick, full, sol_s=1e-6)
    accepted = Critique(kind="accept", closes=True)
    first = state.attempts[0].model_copy(update={"critique": accepted})
    assert "judge" not in replace(state, attempts=(first, state.attempts[1])).closed(SETTINGS)
    slower, faster = (node.reward for node in nodes_of(state))
    assert slower < faster < 0.2
    assert [node.speedup for node in nodes_of(state)] == pytest.approx([1.7 / 1.9, 1.8 / 1.9])


def nodes_of(state: BottleneckState) -> tuple[Node, ...]:
    return state.tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False).nodes


def test_a_suspicion_is_not_a_busy_machine() -> None:
    noisy = measured(3.0, busy=True)
    assert unsteady(noisy)
    both = {"codes": (*noisy.codes, ReasonCode.PARTIAL_WEIGHTS), "reasons": (*noisy.reasons, "other weights")}
    assert not unsteady(noisy.model_copy(update=both))
    assert not unsteady(noisy.model_copy(update={"evidence": Evidence.SUSPICIOUS}))
    assert not unsteady(measured(3.0, verified=False))


def test_a_language_model_gets_more_patience() -> None:
    assert SearchSettings().most_without_gain == 4
    assert SearchSettings(coder="playbook,openai:m").most_without_gain == 8
    assert SearchSettings(coder="openai:m", patience=2).most_without_gain == 2


def test_closing() -> None:
    most = SETTINGS.most_without_gain
    assert bottleneck_state(*[measured(0.9)] * (most - 1)).closed(SETTINGS) == ""
    assert "no gain" in bottleneck_state(*[measured(0.9)] * most).closed(SETTINGS)
    assert bottleneck_state(*[None, broken(), None] * (most - 1), None, None).closed(SETTINGS) == ""
    assert "no gain" in bottleneck_state(*[None, broken(), None] * most).closed(SETTINGS)
    assert "speed of light" in bottleneck_state(measured(9.6)).closed(SETTINGS)
    assert "stay as they are" in bottleneck_state(optimizable=False).closed(SETTINGS)
    assert "could still be gained" in bottleneck_state(share=0.001).closed(SETTINGS)
    assert "could still be gained" in bottleneck_state(measured(8.0), share=0.05, gain_s=0.88).closed(
        SETTINGS
    )


@pytest.mark.parametrize(("speed", "left"), [(1.0, 0.45), (2.0, 0.20), (10.0, 0.0), (20.0, 0.0)])
def test_share_left(speed: float, left: float) -> None:
    assert bottleneck_state(measured(speed)).share_left == pytest.approx(left)


def test_what_is_left_is_a_share_of_the_time_after_all_promotions() -> None:
    before = bottleneck_state(share=0.009)
    assert before.closed(SETTINGS) == "less than 1.0% of the target's time could still be gained"
    assert replace(before, faster=1.5).closed(SETTINGS) == ""
    assert replace(before, faster=1.5).share_left == pytest.approx(1.5 * before.share_left)


def test_success_starts_at_the_prior_and_falls_with_failures() -> None:
    def success(*evaluations: Evaluation | None) -> float:
        return bottleneck_state(*evaluations).tree(SETTINGS, prior=0.6, cost_s=1.0, planless=False).success

    assert success() == pytest.approx(0.6)
    assert success(measured(0.9)) < success()
    assert success(measured(2.0)) > success()


def test_what_is_much_slower_than_its_parent_is_abandoned() -> None:
    nodes = (
        bottleneck_state(measured(4.0), measured(1.0))
        .tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False)
        .nodes
    )
    assert [n.verdict for n in nodes] == ["optimize", "abandon"]
    assert [n.children for n in nodes] == [1, 0]


def test_a_planless_tree_is_exhausted() -> None:
    assert bottleneck_state().tree(SETTINGS, prior=0.5, cost_s=1.0, planless=True).exhausted
    assert not bottleneck_state().tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False).exhausted


def test_another_bottleneck_costs_more_than_the_warm_one() -> None:
    warm, cold = (
        bottleneck_state().tree(SETTINGS, prior=0.5, cost_s=7.0, planless=False, warm=w)
        for w in (True, False)
    )
    assert cold.cost_s > warm.cost_s == 7.0


@pytest.mark.parametrize(
    ("evaluation", "expected"),
    [
        (measured(1.5), True),
        (measured(1.0), True),  # verified: no faster, no slower
        (measured(1.5, verified=False), True),
        (measured(0.5, verified=False), True),
        (measured(1.1, verified=False, spread=0.5), False),
        (measured(1.5, busy=True), False),
        (broken(), True),
    ],
)
def test_what_another_run_may_take_is_settled(evaluation: Evaluation, expected: bool) -> None:
    assert settled(evaluation) is expected


def test_a_verdict_of_another_run_says_nothing_of_the_cost() -> None:
    own = measured(1.1)
    environment = own.environment.model_copy(update={"notes": {REUSED: "evaluation x of run y"}})
    state = bottleneck_state(own, own.model_copy(update={"environment": environment}))
    attempts = [
        a.model_copy(update={"usage": Usage(seconds=s)})
        for a, s in zip(state.attempts, (8.0, 0.5), strict=True)
    ]
    assert costs_of(attempts, state.evaluations) == [8.0]
    tree = replace(state, attempts=tuple(attempts)).tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False)
    assert tree.cost_s == 8.0


def test_reachable_is_never_below_the_speed_of_light() -> None:
    tree = bottleneck_state(gain_s=5.0).tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False)
    assert tree.reachable_s == pytest.approx(0.1)


@pytest.mark.parametrize(("language", "highest"), [("cpp", (2, 3, 3, 3)), ("triton", ())])
def test_cells_of_cpp_have_no_wider_vectors_than_the_machine(language: str, highest: tuple[int, ...]) -> None:
    settings = SETTINGS.model_copy(update={"language": language})
    tree = bottleneck_state().tree(settings, prior=0.5, cost_s=1.0, planless=False, vector_bits=256)
    assert tree.highest == highest


def test_a_node_has_what_policies_read() -> None:
    state = bottleneck_state(measured(2.0), broken(), measured(4.0), None, gain_s=0.75)
    plan = Plan(strategy="tile")
    first = state.attempts[0].model_copy(update={"plan": plan, "solution": "hash"})
    attempts = (first, *state.attempts[1:])
    tree = replace(state, attempts=attempts).tree(
        SETTINGS, prior=0.5, cost_s=1.0, planless=False, seed="run", strategies=(("tile", 0.4),)
    )
    assert (tree.seed, tree.strategies) == ("run", (("tile", 0.4),))
    assert [(n.strategy, n.solution) for n in tree.nodes] == [("tile", "hash"), ("", ""), ("", ""), ("", "")]
    assert [n.children for n in tree.nodes] == [1, 1, 1, 0]
    assert [n.reward for n in tree.nodes] == pytest.approx([0.6, 0.02, 1.0, 0.0])


def test_a_cheating_attempt_is_abandoned_whatever_its_judge_says() -> None:
    cheating = broken().model_copy(update={"status": EvaluationStatus.CHEATING})
    state = bottleneck_state(cheating, verdict="repair")
    (node,) = state.tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False).nodes
    assert node.verdict == "abandon"


def test_what_builds_on_a_cheating_attempt_is_abandoned_too() -> None:
    """A later measurement may find the cheat when others were built on it already."""
    cheating = broken().model_copy(update={"status": EvaluationStatus.CHEATING})
    state = bottleneck_state(measured(1.5), cheating, measured(2.0), measured(2.5))
    nodes = state.tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False).nodes
    assert [n.verdict for n in nodes] == ["optimize", "abandon", "abandon", "abandon"]


def test_a_change_is_the_reward_less_the_parents_also_below_zero() -> None:
    state = bottleneck_state(measured(2.0), measured(1.0), broken(), gain_s=0.75)
    planned = tuple(
        a.model_copy(update={"plan": Plan(strategy="s"), "directive": name})
        for a, name in zip(state.attempts, ("plain", "d1", "d1"), strict=True)
    )
    state = replace(state, attempts=planned)
    assert [gain for _, gain in state.changes()] == pytest.approx([0.4, -0.4, -0.18])
    assert [(use.directive, use.gain) for _, use in state.uses()] == [
        ("plain", pytest.approx(0.4)), ("d1", pytest.approx(-0.4)), ("d1", pytest.approx(-0.18)),
    ]  # fmt: skip
    repaired = replace(state, attempts=(*planned[:2], planned[2].model_copy(update={"parent": "3"})))
    assert len([*repaired.uses()]) == 2, "a repair is shown no directive"


def test_an_attempt_without_a_verdict_is_no_loss_of_what_it_rests_on() -> None:
    state = bottleneck_state(measured(2.0), None, gain_s=0.75)
    first, second = state.attempts
    silent = second.model_copy(update={"plan": Plan(strategy="s"), "directive": "d1", "coder": "m"})
    state = replace(state, attempts=(first, silent))
    assert [*state.changes()] == []
    assert [(use.directive, use.gain) for _, use in state.uses()] == [("d1", None)], "it was drawn"
    assert [pull.gain for _, pull in state.pulls({})] == [0.0], "a model without an answer gained nothing"
    refused = silent.model_copy(update={"solution": "hash"})  # its region cannot be judged
    assert [*replace(state, attempts=(first, refused)).pulls({})] == []


def drawn_for(model: str, *evaluations: Evaluation | None) -> BottleneckState:
    """A chain of attempts that a bandit drew a model for."""
    state = bottleneck_state(*evaluations, gain_s=0.75)
    drawn = {"plan": Plan(strategy="s"), "coder": model}
    return replace(state, attempts=tuple(a.model_copy(update=drawn) for a in state.attempts))


def gains(state: BottleneckState) -> list[float | None]:
    return [pull.gain for _, pull in state.pulls({})]


def test_a_failure_and_its_repair_gain_what_the_repair_is_better_than_the_attempt_before_them() -> None:
    state = drawn_for("m", measured(2.0), broken(), broken(), measured(4.0))
    assert gains(state) == pytest.approx([0.4, 0.0, 0.0, 0.4])
    assert gains(drawn_for("m", measured(2.0), broken(), measured(2.0))) == pytest.approx([0.4, 0.0, 0.0])
    assert gains(drawn_for("m", broken(), measured(2.0))) == pytest.approx([0.0, 0.4]), "over a baseline"


def test_only_an_attempt_with_code_says_what_its_model_costs() -> None:
    state = drawn_for("m", measured(2.0), None)
    first = state.attempts[0].model_copy(update={"solution": "hash"})
    state = replace(state, attempts=(first, state.attempts[1]))
    pulls = [pull for _, pull in state.pulls({"1": 0.3, "2": 0.0})]
    assert [(pull.coded, pull.dollars) for pull in pulls] == [(True, 0.3), (False, 0.0)]


@pytest.mark.parametrize("same", ["solution", "machine_code"])
def test_code_of_an_earlier_attempt_gains_nothing(same: str) -> None:
    """Another verdict on it, by the clock's noise a better one, is no merit of its model."""
    state = drawn_for("m", measured(2.0), measured(1.0), measured(2.2))
    first, second, third = (
        a.model_copy(update={"solution": a.id, "machine_code": f"code {a.id}"}) for a in state.attempts
    )
    copied = third.model_copy(update={same: getattr(first, same)})
    assert gains(replace(state, attempts=(first, second, copied))) == pytest.approx([0.4, 0.0, 0.0])
    assert gains(replace(state, attempts=(first, second, third)))[2] == pytest.approx(0.455, abs=1e-3)


def test_an_attempt_with_known_machine_code_has_the_reward_of_the_one_that_was_measured() -> None:
    state = drawn_for("m", measured(2.0), measured(1.0), None)
    first, second, third = state.attempts
    first = first.model_copy(update={"machine_code": "code", "solution": "a"})
    twin = third.model_copy(update={"machine_code": "code", "solution": "c"})
    state = replace(state, attempts=(first, second, twin))
    assert state.rewards == {"1": pytest.approx(0.6), "2": pytest.approx(0.2), "3": pytest.approx(0.6)}
    assert [gain for _, gain in state.changes()] == pytest.approx([0.4, -0.4, 0.4])
    assert gains(state) == pytest.approx([0.4, 0.0, 0.0]), "its model found nothing new"
    node = state.tree(SETTINGS, prior=0.5, cost_s=1.0, planless=False).nodes[2]
    assert (node.passed, node.reward) == (False, pytest.approx(0.6))
    other = twin.model_copy(update={"machine_code": "other"})
    assert replace(state, attempts=(first, second, other)).rewards["3"] == 0.0


def test_an_accept_of_a_suspicious_attempt_closes_nothing() -> None:
    state = bottleneck_state(measured(2.0), sol_s=1e-6)
    accepted = Critique(kind="accept", closes=True)
    attempts = tuple(a.model_copy(update={"critique": accepted}) for a in state.attempts)
    closed = replace(state, attempts=attempts)
    doubted = {
        name: e.model_copy(update={"evidence": Evidence.SUSPICIOUS}) for name, e in state.evaluations.items()
    }
    assert "judge" in closed.closed(SETTINGS)
    assert "judge" not in replace(closed, evaluations=doubted).closed(SETTINGS)
