"""What transfers between contexts, and what does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.knowledge.ranking.effects import CONTEXT, LEVEL, NOISE, Effects, _inform
from agentforge.knowledge.ranking.similarity import Request
from agentforge.schema import Context, Strategy
from agentforge.store import Experience
from tests.store.nouns import context

ASKED = Request(context())
CARDS = {
    name: Strategy(
        id=name, title=name, summary="", prior_log_speedup=log,
        parameters={"tile": (1024, 512), "stores": ("auto", "on", "off")},
    )
    for name, log in (("fuse", 0.1), ("split", 0.05))
}  # fmt: skip
ELSEWHERE = [context(shape_class=where) for where in ("l2/few-rows", "llc/few-rows", "llc/many-rows")]


def tried(
    where: Context, gain: float, *, n: int = 1, measured: int = 0, after: str = "", **parameters: int | str
) -> Experience:
    return Experience(
        context=where, n=n, mean_log_speedup=gain if n else 0.0, measured=measured,
        mean_measured_log_speedup=gain if measured else 0.0, after=after, parameters=parameters,
    )  # fmt: skip


def effects(
    request: Request = ASKED, fuse: Sequence[Experience] = (), split: Sequence[Experience] = ()
) -> Effects:
    return Effects(CARDS, {"fuse": fuse, "split": split}, request)


def test_nothing_seen_is_the_card() -> None:
    found = effects()
    assert found.expected("fuse") == pytest.approx(0.1)
    assert found.values("fuse") == {}
    assert not found.surely_better("fuse", "split")


def test_much_to_gain_in_a_context_favours_no_strategy() -> None:
    """Each was tried where the other was not; where both were, the second one is faster."""
    found = effects(
        fuse=[tried(ELSEWHERE[0], 1.5), tried(ELSEWHERE[1], 0.1)],
        split=[tried(ELSEWHERE[1], 0.2), tried(ELSEWHERE[2], 0.1)],
    )
    assert found.expected("split") > found.expected("fuse")


def test_parameters_transfer() -> None:
    seen = [r for where in ELSEWHERE for r in (tried(where, 0.1), tried(where, 0.4, tile=1024, stores="on"))]
    found = effects(fuse=seen)
    tile, stores = (found.values("fuse")[name] for name in ("tile", "stores"))
    assert stores[0] == 0.0 and 0.15 < stores[1] < 0.3, "drawn towards 0"
    assert stores[2] == tile[1] == 0.0, "never tried"
    assert found.expected("fuse") == pytest.approx(0.1 + stores[1], abs=0.03), "with the best parameters"
    assert set(found.values("split")["stores"]) == {0.0}, "of another strategy"


def test_what_is_nothing_alike_says_nothing() -> None:
    gpu = context(architecture="sm_90")
    found = effects(fuse=[tried(gpu, 0.1), tried(gpu, 0.9, stores="on")])
    assert found.values("fuse") == {}
    assert found.expected("fuse") == pytest.approx(0.1)


def test_the_nearer_the_experience_the_more_it_moves() -> None:
    places = (
        context(toolchain="g++-13"),
        context(dtype="bfloat16"),
        context(dtype="bfloat16", bound="compute"),
    )
    moved = [
        effects(fuse=[tried(p, 0.1), tried(p, 0.5, stores="on")]).values("fuse")["stores"][1] for p in places
    ]
    assert moved[0] > moved[1] > moved[2] > 0


def test_the_same_operators_in_another_shape_say_more_than_other_operators() -> None:
    graph = (("pointwise", 3), ("reduction", 2))
    asked = Request(context(operators=graph))
    places = (
        context(operators=graph, shape_class="l2/few-rows"),
        context(operators=(("pointwise", 3), ("reduction", 3)), bound="memory", shape_class="dram/many-rows"),
    )
    same, other = (effects(asked, fuse=[tried(p, 0.1, n=9), tried(p, 0.5, n=9, stores="on")]) for p in places)
    assert 0.3 < same.values("fuse")["stores"][1] < 0.4
    assert same.values("fuse")["stores"][1] > other.values("fuse")["stores"][1] + 0.05
    assert asked.alike(places[1]) > asked.alike(places[0])


def test_own_results_outweigh_any_number_of_others() -> None:
    others = [
        r for where in ELSEWHERE for r in (tried(where, 0.1, n=500), tried(where, 0.4, n=500, stores="on"))
    ]
    own = [tried(context(), 0.1, n=9), tried(context(), -0.1, n=9, stores="on")]
    assert effects(fuse=others).values("fuse")["stores"][1] > 0.2
    assert effects(fuse=[*others, *own]).values("fuse")["stores"][1] < -0.05


def test_what_is_not_verified_shows_only_what_is_slower() -> None:
    def gain(speedup: float, *, proven: float) -> float:
        seen = [tried(ELSEWHERE[0], proven), tried(ELSEWHERE[0], speedup, n=0, measured=3, stores="on")]
        return effects(fuse=seen).values("fuse")["stores"][1]

    assert gain(-0.3, proven=0.2) < gain(0.0, proven=0.2) < -0.03
    assert gain(5.0, proven=0.2) == gain(0.2, proven=0.2) == pytest.approx(0.0, abs=1e-3)


def test_nothing_verified_and_fast_is_no_gain() -> None:
    seen = [tried(where, 3.0, n=0, measured=9) for where in ELSEWHERE]
    assert effects(fuse=seen).expected("fuse") <= 0.1


def test_one_surprise_is_no_certainty_and_many_are() -> None:
    def better(places: Sequence[Context]) -> bool:
        found = effects(fuse=[tried(p, 0.1) for p in places], split=[tried(p, 0.5) for p in places])
        return found.surely_better("split", "fuse")

    assert not better([context(dtype="bfloat16", bound="compute")])
    assert better(ELSEWHERE)


def test_a_pair_is_asked_for_after_its_first() -> None:
    seen = [tried(where, 0.3, after="fuse") for where in ELSEWHERE]
    plain, paired = effects(split=seen), effects(Request(context(), after="fuse"), split=seen)
    assert paired.expected("split") > plain.expected("split") > 0.05


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 3), unique=True), st.booleans(), st.floats(-1, 1), st.integers(1, 5)
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([0.0, CONTEXT]),
)
def test_the_information_is_that_of_the_marginal_likelihood(
    rows: list[tuple[list[int], bool, float, float]], spread: float
) -> None:
    """Against the covariance of the results with level and deviations integrated out, inverted directly."""
    design = np.array([[float(i in used) for i in range(4)] for used, *_ in rows])
    level = np.array([[float(has)] for _, has, *_ in rows])
    gains, number = np.array([row[2] for row in rows]), np.array([row[3] for row in rows])
    covariance = LEVEL**2 * level @ level.T + spread**2 * design @ design.T + np.diag(NOISE**2 / number)
    inverse = np.linalg.inv(covariance)
    precision, moment = np.zeros((4, 4)), np.zeros(4)
    _inform(precision, moment, [rows, rows[:1], rows], [0.25, 0.0, 0.75], spread)
    assert precision == pytest.approx(design.T @ inverse @ design, rel=1e-5, abs=1e-5)
    assert moment == pytest.approx(design.T @ inverse @ gains, rel=1e-5, abs=1e-5)
