"""SOL-ExecBench: folders with `definition.json` and `workload.jsonl`, such as `L1/rms_norm`.

Reference: NVIDIA, SOL-ExecBench (2026), arXiv 2603.19173, https://github.com/NVIDIA/SOL-ExecBench.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from agentforge.schema import UsageError

from ..native.tolerance import SuiteTolerance
from ._base import suite_folder
from ._sol_inputs import named_input
from ._trace import Json, TaskReader, TraceSuite, TraceTask, read_json, read_lines

_TRACE = "flashinfer-trace"
"""The folder with the tensors of its FlashInfer-Bench subset."""
_TRACE_VARIABLE = "FLASHINFER_TRACE_DIR"
"""The variable of the environment in which SOL-ExecBench's evaluator looks for that folder."""


class SolExecBench(TraceSuite):
    """Each workload of each folder with a definition is a problem; the folder above gives the group."""

    name = "sol"
    form = "sol:DIR"
    packages: tuple[str, ...] = ("safetensors", "triton")

    def tasks(self) -> tuple[Path, list[TaskReader]]:
        """See `TraceSuite`."""
        root = suite_folder(self._folder)
        files = sorted(root.rglob("definition.json"))
        if not files:
            raise UsageError(f"{root} has no folder with a definition.json: name the folder of the problems")
        return root, [_named(path, root) for path in files]


def _named(path: Path, root: Path) -> TaskReader:
    place = path.parent.relative_to(root)
    name = str(place) if place.parts else root.name
    group = str(place.parent) if len(place.parts) > 1 else ""
    return name, group, partial(_task, path, name, group)


def _task(path: Path, identifier: str, group: str) -> TraceTask:
    lines = path.with_name("workload.jsonl")
    return TraceTask(
        read_json(path),
        read_lines(lines) if lines.is_file() else (),
        identifier=identifier,
        group=group,
        roots=_roots(path),
        solutions=lambda: [read_json(file) for file in sorted(path.parent.glob("solution*.json"))],
        named=named_input,
        judged=_tolerance,
    )


def _tolerance(workload: Json) -> Json:
    try:
        return {"tolerance": SuiteTolerance.model_validate(workload.get("tolerance") or {}).model_dump()}
    except ValidationError as error:
        said = error.errors()[0]
        raise UsageError(
            f"tolerance, {'.'.join(map(str, said['loc']))}: {said['msg']}: correct it"
        ) from error


def _roots(path: Path) -> tuple[Path, ...]:
    """Folders that a definition's tensors may be in; SOL-ExecBench downloads some beside its `benchmark`."""
    told = os.environ.get(_TRACE_VARIABLE)
    return (
        *path.parents,
        *([Path(told).absolute()] if told else []),
        *(parent / _TRACE for parent in path.parents),
    )
