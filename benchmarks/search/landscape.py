"""Landscapes: all points of the playbook for one definition, each measured several times.

A file of landscapes is JSON lines, compressed with gzip; each line is one `Landscape`.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import Field, ValidationError, model_validator

from agentforge.schema import Context, EvaluationStatus, FrozenModel, UsageError

SHAPES = Path(__file__).resolve().parents[1] / "results" / "landscape_shapes.jsonl.gz"
"""Landscapes of the definitions in another size; the policy lab does not use them."""
REPETITIONS = 3
"""Verdicts of each solution."""

Value = int | float | str | bool


class Verdict(FrozenModel):
    """One quick verdict of the referee."""

    status: EvaluationStatus
    speedup: float | None = Field(default=None, gt=0)
    """Over the fastest baseline; None unless it passed and was timed."""
    low: float | None = Field(default=None, ge=0)
    high: float | None = Field(default=None, gt=0)
    """Ends of the speedup's 95 % interval."""
    seconds: float = Field(ge=0)
    """Of the whole verdict."""
    build_s: float = Field(ge=0)
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
    time_s: float = Field(gt=0)
    """Of one forward by eager, as the profile measured it."""
    sol_s: float = Field(ge=0)
    """The speed of light for it."""
    reachable_s: float = Field(gt=0)
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
    def gains(self) -> Mapping[str, float]:
        """Log speedup of each solution, the mean over its verdicts; 0 if one of them failed: the baseline
        is used then."""
        found = {}
        for solution, verdicts in self.verdicts.items():
            logs = [math.log(v.speedup) for v in verdicts if v.speedup is not None]
            found[solution] = fmean(logs) if len(logs) == len(verdicts) else 0.0
        return found

    @property
    def best(self) -> float:
        """The largest log speedup of a solution; 0 if the baseline is the fastest."""
        return max(0.0, *self.gains.values(), 0.0)


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
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as landscapes: {error}") from error
    return found


def write(path: Path, landscapes: Iterable[Landscape]) -> None:
    """Replace the file in one step, so that an interrupted recording leaves the earlier one."""
    text = "".join(one.model_dump_json(exclude_defaults=True) + "\n" for one in landscapes)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(gzip.compress(text.encode(), mtime=0))
    beside.replace(path)
