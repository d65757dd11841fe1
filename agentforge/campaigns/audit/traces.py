"""Solutions of FlashInfer Trace data sets and of SOL-ExecBench, on each workload of their definition.

A line of `traces/**.jsonl` with an evaluation is a claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from agentforge.languages.solutions.folder import write_or_explain
from agentforge.schema import SuiteProblem, UsageError
from agentforge.schema.flashinfer.reader import solution_from_flashinfer

from ..suites._base import shown
from ..suites._trace import TraceSuite, TraceTask, json_objects
from ..suites.flashinfer import FlashInfer
from ..suites.sol import SolExecBench
from ._base import Claim, Submission, number, read_text, text_file

_ANY = "0" * 16
"""Hash of a definition that is not loaded yet."""
_Key = tuple[str, str, str]
"""Definition, workload and solution of a claim."""


class _Solutions:
    """Each solution on each workload is a submission."""

    form: str
    _suite: ClassVar[type[TraceSuite]]

    def submissions(self, place: Path, problems: Path | None, scratch: Path) -> list[Submission]:
        """See `Layout`. A definition that cannot be read is one submission, which says why."""
        if problems is not None:
            raise UsageError(f"{place} has its own definitions: leave out --problems")
        claims = dict(_claims(place))
        found, wrong = list[Submission](), list[UsageError]()
        for identifier, _, read in self._suite(str(place)).tasks()[1]:
            try:
                task = read()
                solutions = task.solutions()
                found += [
                    _submission(task, problem, solution, claims, scratch)
                    for problem in task.problems()
                    for solution in solutions
                ]
            except UsageError as error:
                wrong.append(error)
                name, why = shown(identifier), " ".join(str(error).split())
                found.append(Submission(id=name, problem=name, unusable=why))
        if wrong and len(wrong) == len(found):
            raise wrong[0]
        return found


class FlashInferSolutions(_Solutions):
    """Those of `solutions/`."""

    name = "flashinfer"
    form = "a FlashInfer Trace data set with definitions/, workloads/ and solutions/"
    _suite = FlashInfer

    def accepts(self, place: Path) -> bool:
        """See `Layout`."""
        return all((place / part).is_dir() for part in ("definitions", "solutions"))


class SolSolutions(_Solutions):
    """Those beside a definition: `solution.json`, `solution_2.json`."""

    name = "sol"
    form = "folders with definition.json, workload.jsonl and solution*.json"
    _suite = SolExecBench

    def accepts(self, place: Path) -> bool:
        """See `Layout`."""
        return place.is_dir() and any(
            path.with_name("definition.json").is_file() for path in place.rglob("solution*.json")
        )


def _submission(
    task: TraceTask,
    problem: SuiteProblem,
    solution: Mapping[str, Any],
    claims: Mapping[_Key, Claim],
    scratch: Path,
) -> Submission:
    name = str(solution.get("name", ""))
    why, folder = problem.unsupported, None
    try:
        axes = problem.native.get("axes", {})
        made = solution_from_flashinfer(solution, task.definition, _ANY, axes)
        folder = scratch / made.hash
        refused = write_or_explain(made, folder)
        why = why or (refused.message if refused else "")
    except UsageError as error:
        why = why or str(error)
    return Submission(
        id=f"{problem.id}/{name}",
        problem=problem.id,
        reference=text_file(scratch, "reference.py", problem.source) if problem.source else None,
        solution=folder,
        claim=claims.get((task.identifier, str(problem.native.get("uuid")), name), Claim()),
        unusable=why,
    )


def _claims(place: Path) -> Iterator[tuple[_Key, Claim]]:
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
