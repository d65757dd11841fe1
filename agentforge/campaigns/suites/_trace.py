"""Definitions and workloads of the FlashInfer Trace schema and of SOL-ExecBench as problems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agentforge.schema import SuiteProblem, UsageError
from agentforge.schema.flashinfer.source import CannotRunError, NamedInput, workload_source

from ._base import (
    FolderSuite,
    Selection,
    generated_problem,
    json_lines,
    no_levels,
    parse_json,
    read_problem,
    read_tasks,
)
from ._below import with_whole

Json = dict[str, Any]
_NATIVE = ("name", "op_type", "constraints", "tags")


@dataclass(frozen=True)
class TraceTask:
    """A definition with its workloads, and a way to read the solutions that the data set has of it."""

    definition: Json
    workloads: Sequence[Json]
    identifier: str
    group: str
    roots: Sequence[Path]
    """Folders that paths of safetensors files may be relative to."""
    solutions: Callable[[], Sequence[Json]] = tuple
    """Reads them: they are no part of a problem. Raises `UsageError` if one of them cannot be read."""
    named: NamedInput = lambda *_: ""
    """How the suite draws inputs whose names say what they hold."""
    judged: Callable[[Json], Json] = lambda _: {}
    """What the suite judges a workload by, for `native`. Raises `UsageError` if a field does not fit."""

    def problems(self) -> Iterator[SuiteProblem]:
        """One problem for each workload, and one that says so if there is none.

        Raises:
            UsageError: a field is missing or does not fit.
        """
        native = {key: self.definition[key] for key in _NATIVE if self.definition.get(key)}
        several = self.identifier if len(self.workloads) > 1 else ""
        for number, workload in enumerate(self.workloads, 1):
            said = {key: workload[key] for key in ("uuid", "axes") if workload.get(key)}
            said |= self.judged(workload)
            fields: Json = {"group": self.group, "definition": several, "native": {**native, **said}}
            try:
                source, fields["files"] = self._source([workload])
            except CannotRunError as reason:
                source, fields["unsupported"] = "", str(reason)
            yield generated_problem(
                f"{self.identifier}/{number}" if several else self.identifier, source, **fields
            )
        if not self.workloads:
            yield generated_problem(
                self.identifier, "", group=self.group, native=native, unsupported="it has no workload"
            )

    def source(self) -> str:
        """The reference with the inputs of all workloads.

        Raises:
            UsageError: as for `workload_source`.
        """
        return self._source(self.workloads)[0]

    def _source(self, workloads: Sequence[Json]) -> tuple[str, dict[str, str]]:
        return workload_source(self.definition, workloads, self.roots, self.named)


TaskReader = tuple[str, str, Callable[[], TraceTask]]
"""Identifier and group of a task, and what reads it."""


class TraceSuite(FolderSuite, ABC):
    """A folder of such tasks."""

    form: str

    def problems(self, selection: Selection) -> Iterator[SuiteProblem]:
        """See `Suite`."""
        no_levels(self.form, selection)
        root, tasks = self.tasks()
        yield from read_tasks(((name, group, partial(_problems, read)) for name, group, read in tasks), root)

    @abstractmethod
    def tasks(self) -> tuple[Path, list[TaskReader]]:
        """The suite's folder, and each definition in it.

        Raises:
            UsageError: the folder is missing or is not of this form; for a reader, the definition is not.
        """


def _problems(read: Callable[[], TraceTask]) -> Iterator[SuiteProblem]:
    task = read()
    return with_whole(list(task.problems()), task.source)


def read_json(path: Path) -> Json:
    """One object.

    Raises:
        UsageError: it cannot be read or is no JSON object.
    """
    return _object(parse_json(read_problem(path), str(path)), str(path))


def read_lines(path: Path) -> list[Json]:
    """One object a line.

    Raises:
        UsageError: it cannot be read, or a line is no JSON object.
    """
    return json_objects(read_problem(path), path)


def json_objects(text: str, path: Path) -> list[Json]:
    """One object a line of the text of a file.

    Raises:
        UsageError: a line is no JSON object.
    """
    return [_object(value, place) for place, value in json_lines(text, path)]


def _object(value: Any, where: str) -> Json:
    if not isinstance(value, dict):
        raise UsageError(f"{where} is no JSON object: correct it")
    return value
