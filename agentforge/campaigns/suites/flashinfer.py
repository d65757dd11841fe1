"""A FlashInfer Trace data set: `definitions/**.json` and `workloads/**.jsonl`, with `solutions/` and `blob/`.

Reference: https://bench.flashinfer.ai/docs/flashinfer-trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from agentforge.schema import SuiteProblem, UsageError

from ._base import Selection, no_levels, suite_folder
from ._trace import TraceTask, read_json, read_lines


class FlashInfer:
    """Each workload of each definition is a problem."""

    name = "flashinfer"
    form = "flashinfer:DIR"
    packages: tuple[str, ...] = ("safetensors",)

    def __init__(self, place: str) -> None:
        self._folder = Path(place).expanduser().absolute()

    def problems(self, selection: Selection) -> Iterator[SuiteProblem]:
        """See `Suite`."""
        no_levels(self.form, selection)
        for task in self.tasks():
            yield from task.problems()

    def tasks(self) -> Iterator[TraceTask]:
        """Each definition with its workloads and solutions.

        Raises:
            UsageError: the folder is missing or is not of this form.
        """
        root = suite_folder(self._folder)
        files = sorted((root / "definitions").rglob("*.json"))
        if not files:
            raise UsageError(f"{root} has no definitions/*.json: name the root of a Trace data set")
        workloads, solutions = defaultdict(list), defaultdict(list)
        for path in sorted((root / "workloads").rglob("*.jsonl")):
            for line in read_lines(path):
                found = line.get("workload")
                if not isinstance(found, dict):
                    raise UsageError(f"{path} has a line without a workload: correct it")
                workloads[str(line.get("definition"))].append(found)
        for path in sorted((root / "solutions").rglob("*.json")):
            solution = read_json(path)
            solutions[str(solution.get("definition"))].append({"name": path.stem, **solution})
        for path in files:
            definition = read_json(path)
            name = str(definition.get("name") or path.stem)
            yield TraceTask(
                definition,
                workloads[name],
                identifier=name,
                group=str(definition.get("op_type") or ""),
                roots=(root,),
                solutions=solutions[name],
            )
