"""Landscapes: all points of the playbook for one definition, each measured several times.

A file of landscapes is JSON lines, compressed with gzip; each line is one `Landscape`.
"""

from __future__ import annotations

import gzip
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from pydantic import Field, ValidationError, model_validator

from agentforge.schema import Context, EvaluationStatus, FrozenModel, UsageError

SHAPES = Path(__file__).resolve().parents[1] / "results" / "landscape_shapes.jsonl.gz"
"""Landscapes of the definitions in another size; the policy lab does not use them."""
REPETITIONS = 3
"""Verdicts of each solution."""
LEAST_DEVIATION = 0.01
"""Of a verdict's log speedup: no quick verdict is more exact than this."""

Value = int | float | str | bool


class Verdict(FrozenModel):
    """One quick verdict of the referee."""

    status: EvaluationStatus
    speedup: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Over the fastest baseline; None unless it passed and was timed."""
    low: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    high: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Ends of the speedup's 95 % interval."""
    seconds: float = Field(ge=0, allow_inf_nan=False)
    """Of the whole verdict."""
    build_s: float = Field(ge=0, allow_inf_nan=False)
    cell: tuple[int, ...] = ()
    """Of its machine code (`agentforge/search/cells.py`); empty if nothing is known of it."""

    @model_validator(mode="after")
    def _consistent(self) -> Verdict:
        timed = (self.speedup, self.low, self.high)
        if None in timed and any(x is not None for x in timed):
            raise ValueError("a speedup has both ends of its interval")
        if self.speedup is not None and self.status is not EvaluationStatus.PASSED:
            raise ValueError("only a PASSED verdict has a speedup")
        return self


class Point(FrozenModel):
    """A strategy of the playbook with parameters."""

    strategy: str
    parameters: dict[str, Value] = {}
    solution: str = ""
    """Hash of the code that it gives; empty if it gives none. Several points can give the same code."""
    refused: str = ""
    """Why it gives no code."""

    @model_validator(mode="after")
    def _consistent(self) -> Point:
        if bool(self.solution) == bool(self.refused):
            raise ValueError("a point has either a solution or a reason why it has none")
        return self


class Landscape(FrozenModel):
    """One definition, the points of the playbook, and the verdicts of their solutions."""

    name: str
    held_out: bool
    """Kept for the decision between policies: choose no options by it."""
    definition: str
    """Hash."""
    op_type: str
    context: Context | None = None
    """Key of the knowledge base's experience."""
    reference: str
    """Source in KernelBench's convention."""
    time_s: float = Field(gt=0, allow_inf_nan=False)
    """Of one forward by eager, as the profile measured it."""
    sol_s: float = Field(ge=0, allow_inf_nan=False)
    """The speed of light for it."""
    reachable_s: float = Field(gt=0, allow_inf_nan=False)
    """What a good kernel can be expected to reach."""
    strategies: tuple[tuple[str, float], ...]
    """Applicable strategies with the log speedup that the playbook expects of each, best first."""
    points: tuple[Point, ...]
    verdicts: dict[str, tuple[Verdict, ...]]
    """By hash of the solution."""
    provenance: dict[str, Any]

    @model_validator(mode="after")
    def _consistent(self) -> Landscape:
        known = {point.solution for point in self.points if point.solution}
        if strangers := set(self.verdicts) - known:
            raise ValueError(f"no point has the solution {min(strangers)}")
        if len({(p.strategy, tuple(sorted(p.parameters.items()))) for p in self.points}) < len(self.points):
            raise ValueError("a point is there twice")
        return self

    @property
    def solutions(self) -> tuple[str, ...]:
        """Hashes of the different solutions, in the order of the points."""
        return tuple(dict.fromkeys(point.solution for point in self.points if point.solution))

    @property
    def complete(self) -> bool:
        """Whether there are solutions, and each has all its verdicts."""
        return bool(self.solutions) and all(
            len(self.verdicts.get(s, ())) >= REPETITIONS for s in self.solutions
        )

    @cached_property
    def _estimates(self) -> Mapping[str, tuple[float, float]]:
        return estimates(self.verdicts)

    @cached_property
    def gains(self) -> Mapping[str, float]:
        """Log speedup of each solution over the fastest baseline, as `estimates` has it. One that failed gets
        the lowest of them."""
        least = min((gain for gain, _ in self._estimates.values()), default=0.0)
        return {s: self._estimates[s][0] if s in self._estimates else least for s in self.verdicts}

    def enough(self, share: float) -> float:
        """Log speedup from which on a solution counts as one of the best: with this share of the way from the
        mean to the best, or one standard error below the best, which the noise can hide."""
        best, error = max(self._estimates.values(), default=(0.0, 0.0))
        return min(self.mean + share * self.room, best - error)

    @property
    def best(self) -> float:
        """The largest log speedup of a solution; below 0 if a baseline is faster than all."""
        return max(self.gains.values(), default=0.0)

    @property
    def mean(self) -> float:
        """Mean log speedup of the solutions: what one draw at random is worth."""
        return fmean(self.gains.values()) if self.gains else 0.0

    @property
    def room(self) -> float:
        """What a search can gain here over one draw at random, in log speedup."""
        return self.best - self.mean


def estimates(verdicts: Mapping[str, Sequence[Verdict]]) -> dict[str, tuple[float, float]]:
    """Log speedup of each solution whose verdicts all passed, and its standard error.

    The best of many noisy means looks better than it is. So each mean, weighted by the verdicts' intervals,
    is drawn towards that of all solutions (empirical Bayes): by its own variance, which is scaled to what
    the verdicts of one solution differ by, against the variance between solutions (DerSimonian and Laird,
    1986).
    """
    points: dict[str, list[tuple[float, float]]] = {}
    for solution, made in verdicts.items():
        if made and all(v.speedup and v.low and v.high for v in made):
            points[solution] = [_log_and_weight(v) for v in made]
    if not points:
        return {}
    total = np.array([sum(w for _, w in found) for found in points.values()])
    mean = np.array([sum(x * w for x, w in found) for found in points.values()]) / total
    spread = sum(w * (x - m) ** 2 for m, found in zip(mean, points.values(), strict=True) for x, w in found)
    free = sum(len(found) - 1 for found in points.values())
    own = max(1.0, spread / free if free else 1.0) / total
    weight = 1.0 / own
    excess = float(weight @ (mean - weight @ mean / weight.sum()) ** 2) - (len(mean) - 1)
    scale = weight.sum() - weight @ weight / weight.sum()
    between = max(0.0, excess / scale) if scale > 0 else 0.0
    middle = np.average(mean, weights=1.0 / (own + between))
    gain = middle + between / (between + own) * (mean - middle)
    error = np.sqrt(between * own / (between + own))
    return {s: (float(g), float(e)) for s, g, e in zip(points, gain, error, strict=True)}


def _log_and_weight(verdict: Verdict) -> tuple[float, float]:
    """Log speedup, and one over its variance by the verdict's 95 % interval."""
    assert verdict.speedup and verdict.low and verdict.high
    deviation = max(LEAST_DEVIATION, math.log(verdict.high / verdict.low) / (2 * 1.96))
    return math.log(verdict.speedup), deviation**-2


def read(path: Path) -> dict[str, Landscape]:
    """The landscapes of a file, by name.

    Raises:
        UsageError: it is not there, or a line of it is no landscape.
    """
    found: dict[str, Landscape] = {}
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    landscape = Landscape.model_validate_json(line)
                except ValidationError as error:
                    raise UsageError(f"{path}, line {number}: {error}") from error
                found[landscape.name] = landscape
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read as landscapes: {error}") from error
    return found


def write(path: Path, landscapes: Iterable[Landscape]) -> None:
    """Replace the file in one step, so that an interrupted recording leaves the earlier one."""
    text = "".join(one.model_dump_json(exclude_defaults=True) + "\n" for one in landscapes)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(gzip.compress(text.encode(), mtime=0))
    beside.replace(path)


def run(main: Callable[[], int]) -> int:
    """Exit code of a program; what its user did wrong is one line."""
    try:
        return main()
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
