"""A FlashInfer Trace data set: `definitions/**.json` and `workloads/**.jsonl`, with `solutions/` and `blob/`.

Reference: https://bench.flashinfer.ai/docs/flashinfer-trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path

from agentforge.schema import UsageError

from ._base import suite_folder
from ._trace import Json, TaskReader, TraceSuite, TraceTask, read_json, read_lines


class FlashInfer(TraceSuite):
    """Each workload of each definition is a problem."""

    name = "flashinfer"
    form = "flashinfer:DIR"
    packages: tuple[str, ...] = ("safetensors",)

    def tasks(self) -> tuple[Path, list[TaskReader]]:
        """See `TraceSuite`."""
        data = _Data(suite_folder(self._folder))
        return data.root, [(path.stem, "", partial(data.task, path)) for path in data.definitions]


class _Data:
    """The files of a data set. One that cannot be read stops only the definition that its place names.

    Raises:
        UsageError: there are no definitions, or a file that cannot be read belongs to none of them.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.definitions = root, sorted((root / "definitions").rglob("*.json"))
        if not self.definitions:
            raise UsageError(f"{root} has no definitions/*.json: name the root of a Trace data set")
        self._workloads = defaultdict[str, list[Json]](list)
        self._wrong: dict[str, UsageError] = {}
        for path in sorted((root / "workloads").rglob("*.jsonl")):
            with self._errors_of(path.stem):
                for name, workload in map(partial(_workload, path), read_lines(path)):
                    self._workloads[name].append(workload)

    @cached_property
    def _solutions(self) -> dict[str, list[Json]]:
        """By definition."""
        found = defaultdict[str, list[Json]](list)
        for path in sorted((self.root / "solutions").rglob("*.json")):
            with self._errors_of(path.parent.name):
                solution = read_json(path)
                found[str(solution.get("definition"))].append({"name": path.stem, **solution})
        return found

    def _solutions_of(self, path: Path, name: str) -> list[Json]:
        """Those of the definition in a file.

        Raises:
            UsageError: one of them cannot be read.
        """
        found = self._solutions.get(name, [])
        if path.stem in self._wrong:
            raise self._wrong[path.stem]
        return found

    @contextmanager
    def _errors_of(self, name: str) -> Iterator[None]:
        """Keep the error of a file for the definition that its place names."""
        try:
            yield
        except UsageError as error:
            if name not in {path.stem for path in self.definitions}:
                raise
            self._wrong.setdefault(name, error)

    def task(self, path: Path) -> TraceTask:
        """A definition with its workloads.

        Raises:
            UsageError: one of its files cannot be read.
        """
        if path.stem in self._wrong:
            raise self._wrong[path.stem]
        definition = read_json(path)
        name = str(definition.get("name") or path.stem)
        return TraceTask(
            definition,
            self._workloads[name],
            identifier=name,
            group=str(definition.get("op_type") or ""),
            roots=(self.root,),
            solutions=partial(self._solutions_of, path, name),
        )


def _workload(path: Path, line: Json) -> tuple[str, Json]:
    """A line's definition and workload."""
    found = line.get("workload")
    if not isinstance(found, dict):
        raise UsageError(f"{path} has a line without a workload: correct it")
    return str(line.get("definition")), found
