"""Detects work that few calls do for many later ones, such as filling a stock of outputs.

A median hides such calls. They take longer by the clock, and they use more processor time. Other programs
lengthen a call by the clock alone. What most turns contain, `Overheads.uneven` sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median

from .deferred_work import LEAST_S, SHARE

Effort = tuple[float, float]
"""Seconds by the clock and of processor time: of one call, or of a turn."""

_FEWEST = 4
"""Efforts below which nothing is said."""
_NOISE = 0.1
"""By how much honest workers' excesses differ."""


def levelled(by_input: Iterable[Sequence[Effort]]) -> list[Effort]:
    """Efforts of calls as if each input took as long as the quickest one: as its usual call does.

    Args:
        by_input: the efforts of each input's calls. Inputs with few calls are left out.
    """
    many = [efforts for efforts in by_input if len(efforts) >= _FEWEST]
    usual = [_usual(efforts) for efforts in many]
    least = tuple(min(values) for values in zip(*usual, strict=True))
    return [
        (clock * least[0] / own[0], processor * least[1] / own[1])
        for efforts, own in zip(many, usual, strict=True)
        for clock, processor in efforts
    ]


def rare_excess(ours: Sequence[Effort], others: Iterable[Sequence[Effort]] = ()) -> float:
    """By how much the candidate's mean effort exceeds its usual one, as a share, beyond what others' does and
    noise explains.

    The one that took longest is left out, since another program may have held it up. If it did the work of
    all, `rare_work` doubts it.

    Args:
        ours: the candidate's efforts.
        others: those of other workers, whose excess is the machine's.
    """
    if len(ours) < _FEWEST:
        return 0.0
    longest = max(ours)
    most = [effort for effort in ours if effort is not longest]
    return max(0.0, _excess(most) - _most_excess(others) - _NOISE)


def rare_work(
    ours: Sequence[Effort], others: Iterable[Sequence[Effort]] = (), calls: int = 1
) -> Iterator[str]:
    """The doubt, as a sentence, if there is one.

    Args:
        ours: the candidate's efforts.
        others: those of other workers, whose excess is the machine's.
        calls: number of calls in one effort.
    """
    if len(ours) < _FEWEST:
        return
    found, usual = _excess(ours), _most_excess(others)
    if found - usual > SHARE + LEAST_S * calls / median(clock for clock, _ in ours):
        yield (
            f"its mean call takes {found:.0%} more than its usual one, and others' {usual:.0%} more: "
            "few calls work for many, or something disturbs it: measure again"
        )


def _most_excess(workers: Iterable[Sequence[Effort]]) -> float:
    return max((_excess(efforts) for efforts in workers), default=0.0)


def _excess(efforts: Sequence[Effort]) -> float:
    """By how much the mean exceeds the lower quartile: the lesser share of clock and processor time."""
    means = (fmean(values) for values in zip(*efforts, strict=True))
    return max(0.0, min(mean / usual - 1 for mean, usual in zip(means, _usual(efforts), strict=True)))


def _usual(efforts: Sequence[Effort]) -> Effort:
    """Lower quartiles."""
    clock, processor = (sorted(values)[len(values) // 4] for values in zip(*efforts, strict=True))
    return max(clock, 1e-9), max(processor, 1e-9)
