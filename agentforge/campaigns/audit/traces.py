"""Solutions of FlashInfer Trace data sets and of SOL-ExecBench, on each workload of their definition.

A line of `traces/**.jsonl` with an evaluation is a claim.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentforge.languages.solutions.folder import write_or_explain
from agentforge.schema import SuiteProblem, UsageError
from agentforge.schema.flashinfer.reader import solution_from_flashinfer

from ..suites._trace import TraceTask, json_objects
from ..suites.flashinfer import FlashInfer
from ..suites.sol import SolExecBench
from ._base import Claim, Submission, number, read_text, text_file

_ANY = "0" * 16
"""Hash of a definition that is not loaded yet."""


class _Solutions(ABC):
    """Each solution on each workload is a submission."""

    form: str

    @abstractmethod
    def _tasks(self, place: Path) -> Iterator[TraceTask]: ...

    def submissions(self, place: Path, problems: Path | None, scratch: Path) -> Iterator[Submission]:
        """See `Layout`."""
        if problems is not None:
            raise UsageError(f"{place} has its own definitions: leave out --problems")
        claims = dict(_claims(place))
        for task in self._tasks(place):
            for problem in task.problems():
                for solution in task.solutions:
                    name = str(solution.get("name", ""))
                    key = task.identifier, str(problem.native.get("uuid")), name
                    claim = claims.get(key, Claim())
                    yield _submission(task, problem, solution, claim, scratch)


class FlashInferSolutions(_Solutions):
    """Those of `solutions/`."""

    name = "flashinfer"
    form = "a FlashInfer Trace data set with definitions/, workloads/ and solutions/"

    def accepts(self, place: Path) -> bool:
        """See `Layout`."""
        return all((place / part).is_dir() for part in ("definitions", "solutions"))

    def _tasks(self, place: Path) -> Iterator[TraceTask]:
        return FlashInfer(str(place)).tasks()


class SolSolutions(_Solutions):
    """Those beside a definition: `solution.json`, `solution_2.json`."""

    name = "sol"
    form = "folders with definition.json, workload.jsonl and solution*.json"

    def accepts(self, place: Path) -> bool:
        """See `Layout`."""
        return place.is_dir() and any(
            path.with_name("definition.json").is_file() for path in place.rglob("solution*.json")
        )

    def _tasks(self, place: Path) -> Iterator[TraceTask]:
        return SolExecBench(str(place)).tasks()


def _submission(
    task: TraceTask, problem: SuiteProblem, solution: Mapping[str, Any], claim: Claim, scratch: Path
) -> Submission:
    why, folder = problem.unsupported, None
    try:
        made = solution_from_flashinfer(solution, task.definition, _ANY)
        folder = scratch / made.hash
        refused = write_or_explain(made, folder)
        why = why or (refused.message if refused else "")
    except UsageError as error:
        why = why or str(error)
    return Submission(
        id=f"{problem.id}/{solution.get('name', '')}",
        problem=problem.id,
        reference=text_file(scratch, "reference.py", problem.source) if problem.source else None,
        solution=folder,
        claim=claim,
        unusable=why,
    )


def _claims(place: Path) -> Iterator[tuple[tuple[str, str, str], Claim]]:
    """By definition, workload and solution."""
    for path in sorted((place / "traces").rglob("*.jsonl")):
        for line in json_objects(read_text(path), path):
            said, workload = line.get("evaluation"), line.get("workload")
            if not isinstance(said, dict) or not isinstance(workload, dict):
                continue
            times, machine = said.get("performance"), said.get("environment")
            speedup = times.get("speedup_factor") if isinstance(times, dict) else None
            hardware = machine.get("hardware") if isinstance(machine, dict) else ""
            yield (
                (str(line.get("definition")), str(workload.get("uuid")), str(line.get("solution"))),
                Claim(
                    correct=said.get("status") == "PASSED",
                    speedup=number(speedup),
                    device=hardware if isinstance(hardware, str) else "",
                ),
            )
