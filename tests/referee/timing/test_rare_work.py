"""Work that few calls do for many is found. Other programs, which lengthen only the clock, are no doubt."""

from __future__ import annotations

from random import Random

import pytest

from agentforge.referee.timing.rare_work import Effort, levelled, rare_excess, rare_work


def turns(
    random: Random,
    *,
    period: int = 0,
    hidden: float = 0.6,
    held_up: float = 0.0,
    number: int = 12,
    calls: int = 7,
) -> list[Effort]:
    """Turns of a kernel of 1 ms.

    Args:
        period: one call in so many does `hidden` of the work of all.
        held_up: share of turns that wait 5 ms for another program.
    """
    found, count = [], random.randrange(max(period, 1))
    for _ in range(number):
        seconds = 0.0
        for _ in range(calls):
            count += 1
            seconds += 1e-3 * random.uniform(0.97, 1.03) * (1 - hidden * bool(period))
            seconds += 1e-3 * hidden * period if period and count % period == 0 else 0.0
        found.append((seconds + (5e-3 if random.random() < held_up else 0.0), 2 * seconds))
    return found


@pytest.mark.parametrize("period", [12, 28, 60])
def test_a_stock_for_later_calls_is_found(period: int) -> None:
    random = Random(period)
    found = [bool([*rare_work(turns(random, period=period), [turns(random)], 7)]) for _ in range(100)]
    assert sum(found) >= 95


@pytest.mark.parametrize("held_up", [0.0, 0.2, 0.5])
def test_noise_is_no_doubt(held_up: float) -> None:
    random = Random(1)
    for _ in range(200):
        ours, others = turns(random, held_up=held_up), [turns(random, held_up=held_up)]
        assert not [*rare_work(ours, others, 7)]


def test_what_other_workers_do_too_is_no_doubt() -> None:
    random = Random(2)
    ours, theirs = turns(random, period=12), turns(random, period=12)
    assert [*rare_work(ours, (), 7)]
    assert not [*rare_work(ours, [theirs, theirs], 7)]


@pytest.mark.parametrize("period", [12, 28, 40])
def test_what_few_calls_do_counts_for_all(period: int) -> None:
    """The usual call lacks 60 % of the work: with the excess it takes no less than an honest one."""
    random = Random(period)
    ours, others = turns(random, period=period, number=100), [turns(random, number=100)]
    assert (1 - 0.6) * (1 + rare_excess(ours, others)) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("held_up", [0.0, 0.2, 0.5])
def test_noise_adds_nothing(held_up: float) -> None:
    random = Random(3)
    for _ in range(200):
        ours, others = turns(random, held_up=held_up), [turns(random, held_up=held_up)]
        assert rare_excess(ours, others) == 0.0
    assert rare_excess([]) == 0.0


def test_one_turn_that_was_held_up_adds_nothing() -> None:
    random = Random(5)
    ours, others = turns(random), [turns(random)]
    assert rare_excess([*ours, (1.0, 1.0)], others) == 0.0


def test_few_turns_say_nothing() -> None:
    assert not [*rare_work([(1.0, 1.0), (9.0, 9.0)])]


def test_the_doubt_has_its_figures() -> None:
    (doubt,) = rare_work([(1e-3, 1e-3)] * 8 + [(9e-3, 9e-3)] * 2)
    assert "160% more than its usual" in doubt


def calls(random: Random, seconds: float, number: int, period: int = 0) -> list[Effort]:
    """Efforts of single calls with one input."""
    return [
        (clock * seconds / 1e-3, used * seconds / 1e-3)
        for clock, used in turns(random, period=period, number=number, calls=1)
    ]


def test_inputs_that_take_longer_than_others_are_no_doubt() -> None:
    random = Random(3)
    by_input = [calls(random, 1e-3, 40), calls(random, 3e-3, 40), calls(random, 5e-3, 2)]
    assert [*rare_work([effort for efforts in by_input for effort in efforts])]
    assert not [*rare_work(levelled(by_input))]


def test_a_stock_is_found_whatever_the_inputs_take() -> None:
    random = Random(4)
    found = [
        bool([*rare_work(levelled([calls(random, s, 50, period=17) for s in (1e-3, 2e-3)]))])
        for _ in range(100)
    ]
    assert sum(found) >= 95


def test_few_calls_say_nothing() -> None:
    assert levelled([[(1.0, 1.0)] * 3, []]) == []
