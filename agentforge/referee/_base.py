"""Contracts of the referee: `Evaluator` judges solutions, `Builder` compiles them, `Presenter` shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from agentforge.languages import CommandResult
from agentforge.schema import Definition, Evaluation, Level, Solution, Workload

OnStage = Callable[[str], None]
"""Receives the name of each stage when it begins."""


@dataclass(frozen=True)
class EvaluationRequest:
    """Everything that determines one evaluation."""

    definition: Definition
    workloads: Sequence[Workload]
    """At least one."""
    solution: Solution
    """A solution of that definition."""
    level: Level = Level.QUICK
    """`quick` is never `verified`."""
    sol_s: float | None = None
    """Speed-of-light seconds of one call: the weighted mean over the workloads, if known."""
    deadline: float | None = None
    """By `time.monotonic()`: an evaluation that is still in progress then raises `TimeEnded`."""

    @property
    def weights(self) -> list[float] | None:
        """Of the workloads in a mean; None if it is geometric: see `Workload.key`."""
        return None if any(w.key for w in self.workloads) else [w.weight for w in self.workloads]


class Evaluator(Protocol):
    """Judges solutions: the referee, or a wrapper around it."""

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """Judge one solution. A candidate's failure is data in the evaluation.

        Raises:
            UsageError: the solution belongs to another definition, or there are no workloads.
            TargetError: the reference does not run, or is random.
            MachineError: this machine lacks something.
            HarnessError: the referee failed.
            TimeEnded: the request's deadline came first.
        """
        ...

    ...


class Subject(Protocol):
    """A solution that other programs can run, in the sandbox and on the device, with the referee's inputs."""

    @property
    def results(self) -> Path:
        """Folder that the programs can write to. Its content is untrusted."""
        ...

    def command(self, *arguments: str) -> list[str]:
        """Command that runs the solution. With a file as argument it writes kernel times there."""
        ...

    def run(self, argv: Sequence[str], *, timeout_s: float) -> CommandResult:
        """Run a program in the sandbox."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Keep other timings and profilers off the device until the context ends."""
        ...


@runtime_checkable
class Presenter(Protocol):
    """An evaluator that can hand a solution to a profiler."""

    def subject(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        solution: Solution,
        *,
        programs: Sequence[Path] = (),
    ) -> AbstractContextManager[Subject]:
        """Prepare a solution that passed; `programs` are files and folders to show inside the sandbox.

        Raises:
            HarnessError: the solution cannot be prepared.
        """
        ...


@runtime_checkable
class Builder(Protocol):
    """An evaluator that can compile ahead of time."""

    def build(self, solution: Solution) -> None:
        """Compile a solution into the cache. Thread-safe."""
        ...


@runtime_checkable
class Disassembler(Protocol):
    """An evaluator that can show machine code."""

    def machine_code(self, solution: Solution) -> str:
        """The hot loops of a solution as text, or why there are none. Not while one is evaluated."""
        ...

    def machine_code_hash(self, solution: Solution) -> str:
        """Equal for solutions that run the same instructions on the same data; empty if it is not known. Not
        while one is evaluated."""
        ...


class AroundReferee:
    """What an evaluator around a referee passes on: it compiles and shows machine code if the referee can."""

    referee: Evaluator

    def build(self, solution: Solution) -> None:
        """See `Builder`; nothing if the referee cannot compile ahead of time."""
        if isinstance(self.referee, Builder):
            self.referee.build(solution)

    def machine_code(self, solution: Solution) -> str:
        """See `Disassembler`; a sentence if the referee cannot show it."""
        if isinstance(self.referee, Disassembler):
            return self.referee.machine_code(solution)
        return "machine code cannot be shown here"

    def machine_code_hash(self, solution: Solution) -> str:
        """See `Disassembler`; empty if the referee cannot tell."""
        return self.referee.machine_code_hash(solution) if isinstance(self.referee, Disassembler) else ""
