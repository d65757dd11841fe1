"""The contract of a layout: a folder or file in which other people publish kernels."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from agentforge.registry import Registry
from agentforge.schema import FrozenModel, UsageError, WorkPolicy, content_hash

from ..suites._base import keep_copy, parse_json, read_problem

_MOST_BYTES = 256 << 20
"""Of a file of claims or results."""


class Claim(FrozenModel):
    """What its author says of a submission."""

    correct: bool | None = None
    """None if nothing is said."""
    speedup: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Baseline time / solution time."""
    baseline: str = "eager"
    """Of the speedup: `eager` or `compile`."""
    device: str = ""
    """On which it was measured, if that is known."""


class Submission(FrozenModel):
    """One kernel to be judged."""

    id: str = Field(min_length=1)
    """Unique in the place."""
    problem: str = ""
    """For tables."""
    reference: Path | None = None
    """File in KernelBench's convention."""
    solution: Path | None = None
    """File with `ModelNew`, or the folder of a solution."""
    policy: WorkPolicy | None = None
    """Whose code may do the work; None for the default."""
    claim: Claim = Claim()
    unusable: str = ""
    """Why it cannot be judged. Then there may be no reference or solution."""


class Layout(Protocol):
    """Reads submissions from a place on this machine; downloads nothing and runs nothing of theirs.

    A submission that is half there is not dropped: it has the reason in `unusable`.
    """

    name: str
    form: str
    """How such a place looks, for messages."""

    def accepts(self, place: Path) -> bool:
        """Whether a place that exists has this layout, by its names and first bytes."""
        ...

    def submissions(self, place: Path, problems: Path | None, scratch: Path) -> Iterable[Submission]:
        """All submissions in a fixed order.

        Args:
            problems: folder with the references, if the place has none or the user's own are to count.
            scratch: folder for files that the place has only as text; their paths depend on the text alone.

        Raises:
            UsageError: the place or `problems` cannot be read as this layout.
        """
        ...


layouts: Registry[Layout] = Registry(
    "layouts",
    {
        "claims": "agentforge.campaigns.audit.claims:ClaimsFolder",
        "kernelbench": "agentforge.campaigns.audit.kernelbench:KernelBenchRun",
        "cuda-l1": "agentforge.campaigns.audit.cuda_l1:CudaL1Release",
        "flashinfer": "agentforge.campaigns.audit.traces:FlashInferSolutions",
        "sol": "agentforge.campaigns.audit.traces:SolSolutions",
        "gpu-mode": "agentforge.campaigns.audit.gpu_mode:GpuModeSubmissions",
    },
)
"""All layouts; the first that accepts a place reads it."""


def read_submissions(
    place: Path, *, layout: str = "auto", problems: Path | None = None, scratch: Path, only: str = "*"
) -> tuple[str, tuple[Submission, ...]]:
    """The layout's name and the submissions, those of one problem one after another.

    Args:
        only: pattern of identifiers, as in a shell.

    Raises:
        UsageError: nothing is there, no layout fits, two submissions have one identifier, or none fits
            `only`.
    """
    if not place.exists():
        raise UsageError(f"{place} does not exist: name the folder or file with the kernels to audit")
    reader = _reader(place, layout)
    found = [one for one in reader.submissions(place, problems, scratch) if fnmatch(one.id, only)]
    if not found and only == "*":
        raise UsageError(f"{place} has no submission: name the folder or file with the kernels to audit")
    if not found:
        raise UsageError(f"{place} has no submission that fits --only {only!r}: choose another pattern")
    seen: set[str] = set()
    for one in found:
        if one.id in seen:
            raise UsageError(f"{place} has two submissions {one.id!r}: rename one of them")
        seen.add(one.id)
    order = {problem: position for position, problem in enumerate(dict.fromkeys(s.problem for s in found))}
    return reader.name, tuple(sorted(found, key=lambda s: (order[s.problem], s.policy or "")))


def _reader(place: Path, layout: str) -> Layout:
    if layout != "auto":
        return layouts.create(layout)
    readers = [layouts.create(name) for name in layouts.names()]
    for reader in readers:
        if reader.accepts(place):
            return reader
    forms = "; ".join(f"{reader.name}: {reader.form}" for reader in readers)
    raise UsageError(f"{place} has no known layout ({forms}): name one with --layout")


def read_json(path: Path) -> Any:
    """Content of a JSON file.

    Raises:
        UsageError: it cannot be read, or is no JSON.
    """
    return parse_json(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Text of a file of claims or results.

    Raises:
        UsageError: it cannot be read, or is too large.
    """
    return read_problem(path, _MOST_BYTES)


def number(value: Any) -> float | None:
    """A positive finite number; None for anything else, such as KernelBench's -1."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if real and 0 < value < float("inf") else None


def text_file(scratch: Path, name: str, text: str) -> Path:
    """A file with this text, at a path that depends on the text alone."""
    path = scratch / content_hash(text) / name
    keep_copy(path, text.encode(errors="replace"))
    return path
