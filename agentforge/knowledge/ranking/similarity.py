"""How much experience from one context says about another: a factor for each part that differs.

Operators are compared by what their graph contains: the cosine between the counts of operator kinds, less
for each step of arithmetic intensity. So a softmax says something about a norm, and a run that begins with a
whole kernel learns from regions with the same kinds of operators. The class of whole references says nothing
of what they compute: only operators that they have in common count there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from heapq import nlargest

from agentforge.schema import Context, FrozenModel
from agentforge.store import Experience

from ..context import WHOLE_REFERENCE

_VECTOR_UNITS = ("sse2", "avx", "avx2", "avx512")
_HALF_LIFE = 6
"""Months after which experience weighs half."""
NEAREST = 16
"""Other contexts that are asked, the most similar ones. More would change the expectation little.

16 contexts with many results and a similarity of L know a general effect to CONTEXT / sqrt(16 L), and the
effect in the context in question scatters around it by CONTEXT (effects.py). At L = 0.5, knowing the general
effect exactly would narrow that by 6 %. A look-up's time is about proportional to them.
"""


class Weights(FrozenModel):
    """A factor between 0 and 1 for each part of a context that differs.

    `benchmarks/kb_weights.py` fitted `operator`, `octave`, `dtype` and `bound` to the recorded landscapes of
    29 definitions. The others are guesses: those landscapes are of one compiler, one kind of processor and
    one version of the generator, and `shape` decides what the same operator says, which is not fitted.
    """

    operator: float = 0.74
    """Another operator class whose graph has the same kinds of operators."""
    octave: float = 0.88
    """Each doubling of the arithmetic intensity."""
    shape: float = 0.7
    """Another memory level or another number of rows for each thread; both differ: its square."""
    dtype: float = 0.67
    generation: float = 0.4
    """Each generation between two architectures of one kind of device."""
    compiler: float = 0.85
    """Each major version of the same compiler; another compiler counts as three."""
    bound: float = 0.55
    after: float = 0.5
    """Built on another strategy than the one in question."""
    generator: float = 0.5
    """Written by another version of the code generator."""
    least_age: float = 0.25
    """What old experience weighs at least; it halves every six months of 30 days."""


DEFAULT = Weights()


@dataclass(frozen=True)
class Request:
    """What experience is asked for."""

    context: Context
    after: str = ""
    """Strategy of the attempt to build on; empty for a start from the definition."""
    generator: str = ""
    """Hash of the code generator in use."""
    now: datetime | None = None
    """The time that experience has aged to; None for no ageing."""
    weights: Weights = DEFAULT
    _alike: dict[str, float] = field(default_factory=dict, compare=False, repr=False)

    def alike(self, known: Context) -> float:
        """What experience from `known` weighs; computed once for each context."""
        found = self._alike.get(known.hash)
        if found is None:
            found = self._alike[known.hash] = similarity(known, self.context, self.weights)
        return found


def nearest(known: Sequence[Context], request: Request) -> list[Context]:
    """The context in question if it is known, and the `NEAREST` others most like it."""
    own = request.context.hash
    others = (context for context in known if context.hash != own)
    return [*(c for c in known if c.hash == own), *nlargest(NEAREST, others, key=request.alike)]


def similarity(known: Context, asked: Context, weights: Weights = DEFAULT) -> float:
    """What experience from `known` weighs in `asked`: 1 in the same context, 0 if it says nothing."""
    if known.hash == asked.hash:
        return 1.0
    factors = (
        _operators(known, asked, weights),
        weights.shape ** _different(known.shape_class, asked.shape_class),
        weights.dtype if known.dtype != asked.dtype else 1.0,
        _generations(known.architecture, asked.architecture, weights.generation),
        weights.compiler ** _versions(known.toolchain, asked.toolchain),
        weights.bound if known.bound and asked.bound and known.bound != asked.bound else 1.0,
    )
    return math.prod(factors)


def freshness(
    record: Experience, after: str, generator: str, now: datetime | None, weights: Weights = DEFAULT
) -> float:
    """What a record weighs for what was done, apart from where: its pair, its generator and its age."""
    factor = weights.after if record.after != after else 1.0
    if record.generator and record.generator != generator:
        factor *= weights.generator
    if record.newest is not None and now is not None:
        months = max(0, (now - record.newest).days // 30)  # whole ones, so that a resumed run decides alike
        factor *= max(weights.least_age, 2.0 ** (-months / _HALF_LIFE))
    return factor


def _operators(known: Context, asked: Context, weights: Weights) -> float:
    same = known.op_type == asked.op_type
    classed = same and asked.op_type != WHOLE_REFERENCE  # whole references have nothing in common by that
    if not known.operators or not asked.operators:
        return 1.0 if classed else 0.0
    (before, length), (here, other) = _vector(known.operators), _vector(asked.operators)
    norms = length * other
    alike = sum(count * here.get(kind, 0) for kind, count in before.items()) / norms if norms else 0.0
    if known.intensity is not None and asked.intensity is not None:
        alike *= weights.octave ** abs(known.intensity - asked.intensity)
    if not same:
        return weights.operator * alike
    return max(alike, weights.operator) if classed else alike


@lru_cache(maxsize=1 << 14)
def _vector(operators: tuple[tuple[str, int], ...]) -> tuple[dict[str, int], float]:
    """Counts by kind, and their length."""
    counts = dict(operators)
    return counts, math.hypot(*counts.values())


@lru_cache(maxsize=1 << 14)
def _different(first: str, second: str) -> int:
    """Parts between slashes that differ."""
    a, b = first.split("/"), second.split("/")
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


@lru_cache(maxsize=1 << 14)
def _generations(first: str, second: str, factor: float) -> float:
    """Between two vector units of one instruction set, or two architectures of a GPU vendor; else 0."""
    if first == second:
        return 1.0
    a, b = (re.fullmatch(r"sm_(\d{1,3})\d", name) for name in (first, second))
    if a and b:
        return float(factor ** max(1, abs(int(a[1]) - int(b[1]))))
    (set_a, _, unit_a), (set_b, _, unit_b) = first.partition(" "), second.partition(" ")
    if set_a != set_b or a or b:
        return 0.0
    known = [_VECTOR_UNITS.index(unit) for unit in (unit_a, unit_b) if unit in _VECTOR_UNITS]
    return float(factor ** (abs(known[0] - known[1]) if len(known) == 2 else 1))


@lru_cache(maxsize=1 << 14)
def _versions(first: str, second: str) -> int:
    if first == second or not first or not second:
        return 0
    (tool_a, _, version_a), (tool_b, _, version_b) = first.rpartition("-"), second.rpartition("-")
    if tool_a != tool_b or not all(re.fullmatch(r"\d{1,6}", part) for part in (version_a, version_b)):
        return 3
    return abs(int(version_a) - int(version_b))
