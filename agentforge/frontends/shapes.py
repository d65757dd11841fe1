"""A range of shapes: a target whose calls differ in some sizes, `--shapes batch=1..32,seq=128..2048`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from keyword import iskeyword

from agentforge.isolation.child_process import Progress
from agentforge.schema import InputSpec, SizeRange, Target, TensorInput, UsageError, Workload

from ._load import run_probe

_DIMENSIONS = {"batch": 0, "seq": 1}
"""Names that stand for a dimension of every input that has the first input's size there."""
_PLACES = re.compile(r"([^\W\d]\w*:)?\w+\.\d(\+\w+\.\d)*")
"""`x.2`, `q.1+mask.0`, `length:q.1+mask.0`."""
_MEASURED = 5
_PROBES = 4
_MOST = 1 << 24
"""Largest size."""


def parse_shapes(text: str) -> dict[str, tuple[int, int]]:
    """Parse `batch=1..32,x.2=8..64,length:q.1+mask.0=8..64`.

    Returns:
        Lowest and highest size by the text before the sign `=`.

    Raises:
        UsageError: it has another form, a name is unknown or twice there, or a range is empty.
    """
    found: dict[str, tuple[int, int]] = {}
    for part in text.replace(" ", "").split(","):
        match = re.fullmatch(r"([\w.:+]+)=(\d{1,9})\.\.(\d{1,9})", part)
        if match is None:
            raise UsageError(f"--shapes {part!r} does not read; write batch=1..32,seq=128..2048")
        name, low, high = match[1], int(match[2]), int(match[3])
        if name not in _DIMENSIONS and (not _PLACES.fullmatch(name) or iskeyword(_label(name))):
            raise UsageError(
                f"--shapes does not know {name}; write batch, seq, an input and its dimension: x.2=8..64, or "
                "several dimensions of one size with a name: length:q.1+mask.0=8..64"
            )
        if _variable(name) in map(_variable, found):
            raise UsageError(f"--shapes has {_label(name)} twice")
        if not 1 <= low < high <= _MOST:
            raise UsageError(
                f"--shapes {part}: the first size is at least 1 and below the second, and the second is at "
                f"most {_MOST}"
            )
        found[name] = low, high
    return found


def _label(name: str) -> str:
    """What the user calls a range: the name before a colon, if there is one."""
    return name.partition(":")[0]


def _variable(name: str) -> str:
    """The same as a variable of an exported graph."""
    return re.sub(r"\W", "_", _label(name))


def with_shapes(target: Target, text: str, progress: Progress | None = None) -> Target:
    """The target for all shapes in a range; `text` is empty for the target itself.

    Raises:
        UsageError: the range does not fit the inputs.
        TargetError: the model fails at one of the shapes.
    """
    if not text:
        return target
    if len(target.workloads) > 1:
        raise UsageError(f"{target.name} lists its own workloads: leave out --shapes")
    ranges = _places(target, parse_shapes(text))
    measured, probes = sampled([(r.low, r.high) for r in ranges])
    found = target.model_copy(
        update={
            "shapes": ranges,
            "workloads": tuple(_workload(target, ranges, sizes) for sizes in measured),
            "probes": tuple(_workload(target, ranges, sizes) for sizes in probes),
        }
    )
    payload = {"target": found.model_dump(mode="json"), "device": target.device}
    notes = run_probe("agentforge.frontends.shape_probe:check_shapes", target.name, payload, progress)[
        "notes"
    ]
    return found.model_copy(update={"notes": (*target.notes, *notes)})


def sampled(ranges: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Sizes that are measured, and others that are only checked.

    Measured are the corners that are all low and all high, powers of two between them, and corners that mix
    both, at most five. Checked are sizes beside the ends, primes, and others that no vector width divides.
    """
    lows, highs = (tuple(r[end] for r in ranges) for end in (0, 1))
    between = list(zip(*(_powers(low, high) for low, high in ranges), strict=True))
    mixed = [c for c in itertools.product(*ranges) if c not in (lows, highs)]
    measured = list(dict.fromkeys([lows, highs, *between[1:2], *mixed[::-1], *between]))[:_MEASURED]
    prime = tuple(_prime(low, high) for low, high in ranges)
    odd = [
        tuple(low + 1 for low, _ in ranges),
        tuple(high - 1 for _, high in ranges),
        prime,
        (ranges[0][0], *prime[1:]),
        tuple((high - 1, low + 1)[n % 2] for n, (low, high) in enumerate(ranges)),
    ]
    return sorted(measured), [p for p in dict.fromkeys(odd) if p not in measured][:_PROBES]


def _powers(low: int, high: int) -> list[int]:
    """Three sizes between the ends, powers of two if there are any."""
    steps = [low * (high / low) ** (n / 4) for n in (1, 2, 3)]
    near = [1 << round(math.log2(step)) for step in steps]
    return [n if low < n < high else round(step) for n, step in zip(near, steps, strict=True)]


def _prime(low: int, high: int) -> int:
    """A prime near the geometric middle, else the middle."""
    middle = round((low * high) ** 0.5)
    for n in range(middle, high):
        if n > 2 and all(n % d for d in range(2, int(n**0.5) + 1)):
            return n
    return middle


def _places(target: Target, wanted: Mapping[str, tuple[int, int]]) -> tuple[SizeRange, ...]:
    """Where each range is in the inputs."""
    workload = target.workloads[0]
    tensors = {i.name: i for i in workload.inputs if isinstance(i, TensorInput)}
    listing = ", ".join(f"{name}{list(t.shape)}" for name, t in tensors.items())
    if workload.nested:
        names = ", ".join(i.name for i in workload.inputs)
        raise UsageError(f"--shapes goes with inputs that are tensors, not lists or dicts: {names}")
    taken: dict[tuple[str, int], str] = {}
    found = []
    for name, (low, high) in wanted.items():
        places = _named(name, tensors)
        if not places:
            raise UsageError(f"--shapes: no input has the dimension {name}; the inputs are {listing}")
        if len({tensors[n].shape[d] for n, d in places}) > 1:
            raise UsageError(f"--shapes: the dimensions {name} differ in size; the inputs are {listing}")
        for place in places:
            if place in taken:
                raise UsageError(f"--shapes: {taken[place]} and {name} are the same dimension of {place[0]}")
            taken[place] = name
            if tensors[place[0]].strides is not None:
                raise UsageError(f"--shapes: {place[0]} is not contiguous; give a contiguous example")
        found.append(SizeRange(name=_label(name), low=low, high=high, places=tuple(places)))
    return tuple(found)


def _named(name: str, tensors: Mapping[str, TensorInput]) -> list[tuple[str, int]]:
    if name not in _DIMENSIONS:
        parts = (part.split(".") for part in name.rpartition(":")[2].split("+"))
        found = [(tensor, int(number)) for tensor, number in parts]
        return found if all(t in tensors and d < len(tensors[t].shape) for t, d in found) else []
    dimension = _DIMENSIONS[name]
    sizes = {n: t.shape[dimension] for n, t in tensors.items() if len(t.shape) > dimension}
    first = next(iter(sizes.values()), None)
    return [(n, dimension) for n, size in sizes.items() if size == first]


def _workload(target: Target, ranges: Sequence[SizeRange], sizes: Sequence[int]) -> Workload:
    """One call with these sizes; `seq=128` is one of its names."""
    size = {place: n for r, n in zip(ranges, sizes, strict=True) for place in r.places}

    def resized(spec: InputSpec) -> InputSpec:
        if not isinstance(spec, TensorInput):
            return spec
        shape = tuple(size.get((spec.name, d), n) for d, n in enumerate(spec.shape))
        return spec.model_copy(update={"shape": shape})

    name = ",".join(f"{r.name}={n}" for r, n in zip(ranges, sizes, strict=True))
    return Workload(name=name, inputs=tuple(map(resized, target.workloads[0].inputs)))
