"""Directives: which fragment an attempt gets, and when a new one is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agentforge.agents.directives import (
    EVERY,
    PLAIN,
    Use,
    draw_directive,
    fitness,
    fittest,
    is_due,
    live,
    names,
)
from agentforge.schema import Directive
from agentforge.search import draw_by

KNOWN = [PLAIN, "d1", "d2", "d3"]
USES = st.lists(st.builds(Use, st.sampled_from(KNOWN), st.none() | st.floats(-1, 1)), max_size=40)


@given(USES, st.integers(), st.integers(1, 4))
def test_the_same_history_draws_the_same_live_fragment(uses: list[Use], seed: int, most: int) -> None:
    drawn = draw_directive(KNOWN, uses, Random(seed), most)
    assert draw_directive(KNOWN, tuple(uses), Random(seed), most) == drawn
    assert drawn in live(KNOWN, uses, most)
    assert len(live(KNOWN, uses, most)) == most


def drawn(gains: Mapping[str, float], attempts: int = 60) -> Counter[str]:
    found: Counter[str] = Counter()
    for run in range(20):
        uses: list[Use] = []
        for number in range(attempts):
            name = draw_directive(list(gains), uses, draw_by(str(run), str(number)), len(gains))
            noise = draw_by("noise", str(run), str(number)).gauss(0.0, 0.1)
            uses.append(Use(name, gains[name] + noise))
        found.update(use.directive for use in uses)
    return found


def test_the_fragment_that_gains_most_is_drawn_most_and_none_is_given_up() -> None:
    found = drawn({PLAIN: 0.0, "d1": 0.3, "d2": -0.2})
    assert found["d1"] > 0.6 * found.total()
    assert min(found.values()) >= 20


def test_one_lucky_attempt_counts_less_than_many_good_ones() -> None:
    uses = [Use("d1", 0.3)] + [Use("d2", 0.28)] * 10 + [Use(PLAIN, 0.0)] * 10
    assert fitness("d2", uses) > fitness("d1", uses) > fitness(PLAIN, uses)
    assert fittest(KNOWN[:3], uses) == "d2"


def test_a_new_fragment_is_live_and_the_worst_one_makes_room() -> None:
    uses = [Use(PLAIN, 0.1)] * 3 + [Use("d1", -0.2)] * 3 + [Use("d2", 0.2)] * 3
    assert set(live(KNOWN, uses, 3)) == {"d3", "d2", PLAIN}
    tried = [*uses, Use("d3", None)]
    found = Counter(draw_directive(KNOWN, tried, Random(seed), 3) for seed in range(200))
    assert "d1" not in found


def test_attempts_under_way_make_the_next_draw_another() -> None:
    done = [Use(name, 0.1) for name in KNOWN]
    begun = [Use("d1", None)] * 8 + [Use("d2", None)] * 8 + [Use(PLAIN, None)] * 8
    found = Counter(draw_directive(KNOWN, [*done, *begun], Random(seed), 4) for seed in range(100))
    assert found["d3"] > 80


def test_one_is_due_after_every_ten_attempts_even_if_the_last_call_failed() -> None:
    written = [Directive(id="d1", parent=PLAIN, text="")]
    assert not is_due([], [Use(PLAIN, 0.0)] * (EVERY - 1))
    assert is_due([], [Use(PLAIN, 0.0)] * EVERY)
    assert not is_due(written, [Use(PLAIN, 0.0)] * (2 * EVERY - 1))
    assert is_due(written, [Use(PLAIN, 0.0)] * 2 * EVERY)
    assert names(written) == [PLAIN]
