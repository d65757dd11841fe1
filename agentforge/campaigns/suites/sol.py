"""SOL-ExecBench: folders with `definition.json` and `workload.jsonl`, such as `L1/rms_norm`.

Reference: NVIDIA, SOL-ExecBench (2026), arXiv 2603.19173, https://github.com/NVIDIA/SOL-ExecBench.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agentforge.schema import SuiteProblem, UsageError

from ._base import Selection, Task, no_levels, read_tasks, suite_folder
from ._sol_inputs import named_input
from ._trace import TraceTask, read_json, read_lines

_TRACE = "flashinfer-trace"
"""The folder with the tensors of its FlashInfer-Bench subset."""
_TRACE_VARIABLE = "FLASHINFER_TRACE_DIR"
"""The variable of the environment in which SOL-ExecBench's evaluator looks for that folder."""


class SolExecBench:
    """Each workload of each folder with a definition is a problem; the folder above gives the group."""

    name = "sol"
    form = "sol:DIR"
    packages: tuple[str, ...] = ("safetensors", "triton")

    def __init__(self, place: str) -> None:
        self._folder = Path(place).expanduser().absolute()

    def problems(self, selection: Selection) -> Iterator[SuiteProblem]:
        """See `Suite`."""
        no_levels(self.form, selection)
        root, files = self._definitions()
        yield from read_tasks((_named(path, root) for path in files), root)

    def tasks(self) -> Iterator[TraceTask]:
        """Each definition with its workloads and solutions.

        Raises:
            UsageError: the folder is missing or is not of this form.
        """
        root, files = self._definitions()
        for path in files:
            yield _task(path, *_place(path, root))

    def _definitions(self) -> tuple[Path, list[Path]]:
        root = suite_folder(self._folder)
        files = sorted(root.rglob("definition.json"))
        if not files:
            raise UsageError(f"{root} has no folder with a definition.json: name the folder of the problems")
        return root, files


def _place(path: Path, root: Path) -> tuple[str, str]:
    """Identifier and group of a definition."""
    place = path.parent.relative_to(root)
    return str(place) if place.parts else root.name, str(place.parent) if len(place.parts) > 1 else ""


def _named(path: Path, root: Path) -> Task:
    name, group = _place(path, root)
    return name, group, lambda: _task(path, name, group).problems()


def _task(path: Path, identifier: str, group: str) -> TraceTask:
    lines = path.with_name("workload.jsonl")
    return TraceTask(
        read_json(path),
        read_lines(lines) if lines.is_file() else (),
        identifier=identifier,
        group=group,
        roots=_roots(path),
        solutions=[read_json(file) for file in sorted(path.parent.glob("solution*.json"))],
        named=named_input,
    )


def _roots(path: Path) -> tuple[Path, ...]:
    """Folders that a definition's tensors may be in; SOL-ExecBench downloads some beside its `benchmark`."""
    told = os.environ.get(_TRACE_VARIABLE)
    return (
        *path.parents,
        *([Path(told).absolute()] if told else []),
        *(parent / _TRACE for parent in path.parents),
    )
