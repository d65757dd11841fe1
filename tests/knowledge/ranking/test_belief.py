"""The mathematics, against itself, against scipy and against simulation."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from agentforge.knowledge.ranking.belief import Posterior, best_alone, posterior, prior
from agentforge.knowledge.ranking.similarity import Request
from agentforge.schema import Context, Strategy
from agentforge.store import Experience
from tests.store.nouns import context

ASKED = Request(context())
LOGS = st.lists(st.floats(-3, 3), min_size=1, max_size=12)


def card(log: float = 0.2, weight: float = 1.0) -> Strategy:
    return Strategy(id="fuse", title="Fuse", summary="", prior_log_speedup=log, prior_weight=weight)


def record(logs: list[float], where: Context | None = None, failures: int = 0, slow: int = 0) -> Experience:
    mean = sum(logs) / len(logs) if logs else 0.0
    variance = sum((x - mean) ** 2 for x in logs) / (len(logs) - 1) if len(logs) > 1 else 0.0
    return Experience(
        context=where or context(),
        n=len(logs),
        mean_log_speedup=mean,
        var_log_speedup=variance,
        failures=failures,
        unproven=slow,
        discouraging=slow,
    )


@given(LOGS, LOGS)
def test_in_one_step_or_in_two(first: list[float], second: list[float]) -> None:
    start = prior(card())
    twice = start.updated(record(first)).updated(record(second))
    once = start.updated(record(first + second))
    for field in ("mu", "kappa", "alpha", "beta", "verified"):
        assert getattr(twice, field) == pytest.approx(getattr(once, field), rel=1e-6, abs=1e-9)


@given(LOGS, st.floats(-1, 1), st.floats(0.1, 10))
def test_the_textbook_formula(logs: list[float], mu: float, kappa: float) -> None:
    """Murphy 2007, equations 85 to 89, one observation at a time."""
    belief = Posterior(mu, kappa, 2.0, 0.25)
    m, k, a, b = mu, kappa, 2.0, 0.25
    for x in logs:
        b += k * (x - m) ** 2 / (2 * (k + 1))
        m = (k * m + x) / (k + 1)
        k += 1
        a += 0.5
    got = belief.updated(record(logs))
    assert (got.mu, got.kappa, got.alpha, got.beta) == pytest.approx((m, k, a, b), rel=1e-6, abs=1e-9)


@given(LOGS, st.floats(0, 1))
def test_the_mean_lies_between_the_prior_and_the_data(logs: list[float], weight: float) -> None:
    belief = prior(card()).updated(record(logs), weight)
    mean = sum(logs) / len(logs)
    assert min(0.2, mean) - 1e-9 <= belief.mu <= max(0.2, mean) + 1e-9


@settings(deadline=None, max_examples=25)
@given(st.floats(-1, 1), st.floats(0.2, 20), st.floats(1.5, 20), st.floats(0.01, 2))
def test_the_value_is_the_integral(mu: float, kappa: float, alpha: float, beta: float) -> None:
    belief = Posterior(mu, kappa, alpha, beta, verified=1.0, failed=0.0)
    t = stats.t(2 * alpha, mu, math.sqrt(beta / alpha))
    expected, _ = integrate.quad(lambda x: x * t.pdf(x), 0, math.inf, limit=200)
    assert belief.value == pytest.approx(expected, rel=1e-4, abs=1e-6)
    predictive = stats.t(2 * alpha, mu, math.sqrt(beta * (kappa + 1) / (alpha * kappa)))
    assert belief.p_gain == pytest.approx(predictive.sf(0.0), abs=1e-6)


@given(LOGS, st.integers(0, 9), st.integers(0, 9))
def test_value_and_chances_are_in_range(logs: list[float], failures: int, slow: int) -> None:
    belief = posterior(card(), [record(logs, failures=failures, slow=slow)], ASKED)
    assert belief.value >= 0
    assert 0 <= belief.p_gain <= belief.p_verified <= 1


@given(LOGS, st.integers(0, 9), st.integers(1, 9))
def test_a_failure_more_never_helps(logs: list[float], failures: int, more: int) -> None:
    less = posterior(card(), [record(logs, failures=failures)], ASKED)
    worse = posterior(card(), [record(logs, failures=failures + more)], ASKED)
    assert worse.value < less.value
    assert worse.p_gain < less.p_gain


def test_settings_that_were_not_promoted_do_not_count_against_the_one_that_was() -> None:
    won = record([1.0])
    beside = won._replace(unproven=9)
    assert posterior(card(), [beside], ASKED) == posterior(card(), [won], ASKED)
    slow = beside._replace(discouraging=9)
    assert posterior(card(), [slow], ASKED).value < posterior(card(), [won], ASKED).value


def test_before_anything_was_seen_the_cards_expectation_ranks() -> None:
    """That a card is unsure of itself is no merit."""
    sure, unsure = card(0.12, weight=4.0), card(0.05, weight=0.5)
    assert posterior(sure, [], ASKED).value > posterior(unsure, [], ASKED).value


def test_nothing_seen_is_the_card() -> None:
    assert posterior(card(0.7, 3.0), [], ASKED) == prior(card(0.7, 3.0))


def test_much_seen_is_the_data() -> None:
    random = Random(0)
    logs = [random.gauss(0.9, 0.1) for _ in range(400)]
    belief = posterior(card(-1.0), [record(logs)], ASKED)
    assert belief.mu == pytest.approx(0.9, abs=0.03)
    assert math.sqrt(belief.beta / belief.alpha) == pytest.approx(0.1, abs=0.05)


def test_other_contexts_decide_the_mean_of_the_prior() -> None:
    assert posterior(card(), [], ASKED, 0.4).mu == pytest.approx(0.4)
    assert posterior(card(), [record([1.0] * 500, context(dtype="bfloat16"))], ASKED) == prior(card())
    assert posterior(card(), [record([-0.5] * 100)], ASKED, 0.4).mu < -0.4, "own results win"


def test_failures_elsewhere_count_by_their_share_and_up_to_a_few() -> None:
    def chance(failures: int, passed: int, where: Context) -> float:
        return posterior(card(), [record([0.3] * passed, where, failures=failures)], ASKED).p_verified

    near, far = context(toolchain="g++-13"), context(dtype="bfloat16", bound="compute")
    assert chance(4, 0, near) < chance(4, 0, far) < chance(0, 9, near) == prior(card()).p_verified
    assert chance(4, 0, near) < chance(4, 90, near) < prior(card()).p_verified
    assert chance(900, 0, near) > 0.15
    assert chance(4, 0, context(architecture="sm_90")) == prior(card()).p_verified


def test_the_best_alone_knows_nothing_from_elsewhere() -> None:
    known = {"fuse": card(0.2), "tile": card(0.1)}
    elsewhere = record([2.0] * 9, context(dtype="bfloat16"))
    assert best_alone(known, {"tile": [elsewhere]}, ASKED) == "fuse"
    assert best_alone(known, {"tile": [record([2.0] * 9)]}, ASKED) == "tile"
    assert best_alone({}, {}, ASKED) == ""
