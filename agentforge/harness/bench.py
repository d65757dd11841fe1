"""The trusted side of an evaluation: baseline workers with their inputs and bounds for one definition."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from agentforge.config import RefereeSettings
from agentforge.schema import Definition, TargetError, Workload

from .contents import Content
from .inputs import Arguments, Inputs, arguments_of
from .leaves import Leaf
from .memory import Block
from .party import Party, PartyFailure
from .side import CPU, DeviceSide
from .taskcheck import TaskReport, examine_task
from .tolerance import Bound, Exactness, derive, measure, root_mean_square, widest

_COMPILE_TIMEOUT_S = 600.0

_T = TypeVar("_T")

Spawn = Callable[[str], Party]
"""Makes a trusted party of a name."""


@dataclass
class Weights:
    """The reference's weights and init arguments, sealed: whoever maps them can only read."""

    block: Block
    init: Any
    state: dict[str, Any]
    seed: int

    def __post_init__(self) -> None:
        self._reader = Path(f"/proc/self/fd/{self.block.fd}").open("rb", buffering=0)  # noqa: SIM115

    def read_only(self) -> int:
        """A descriptor that cannot be written through; the caller closes it.

        Of the one that was opened first: a candidate under our user id could forbid opening it again.
        """
        return os.dup(self._reader.fileno())

    def close(self) -> None:
        """Give the memory back."""
        self._reader.close()
        self.block.close()


@dataclass(frozen=True)
class OutputForm:
    """What one leaf of an output looks like."""

    path: str
    numel: int = 0
    """Elements of a tensor; 0 for a scalar."""
    nbytes: int = 0

    @staticmethod
    def of(leaf: Leaf) -> OutputForm:
        value = leaf.value
        if not isinstance(value, torch.Tensor):
            return OutputForm(leaf.path)
        return OutputForm(leaf.path, value.numel(), value.nbytes)


@dataclass
class Course:
    """One workload made ready: inputs, what the output looks like, how exact it must be."""

    workload: Workload
    inputs: Inputs
    copy_inputs: bool
    """The reference writes to its inputs: every party works on copies."""
    outputs_bytes: int
    bounds: list[Bound] = field(default_factory=list)
    """One for each leaf, the loosest over the draws."""
    outputs: list[OutputForm] = field(default_factory=list)
    """What the last reference output that was asked for looks like."""
    scales: list[float] = field(default_factory=list)
    """Root mean square of each leaf, of one draw; 0 where it is no floating-point tensor."""
    guards: list[int] = field(default_factory=list)
    """Offsets of pages in the inputs that nobody may touch."""
    sharper: list[Content] = field(default_factory=list)
    """Contents that tell wrong answers which usual ones do not."""
    exact_ok: bool = True
    """False where the reference cannot be computed in float64."""

    def body(self) -> dict[str, Any]:
        """The message that gives a worker this workload."""
        return {
            "arguments": self.inputs.arguments.encoded,
            "slot_bytes": self.inputs.slot_bytes,
            "slots": self.inputs.slots,
            "copy": self.copy_inputs,
            "guards": self.guards,
        }

    @property
    def reduction(self) -> float:
        """How long a sum may be: input elements per output element, or the longest dimension of an input
        (a softmax sums rows that are as long as its output's)."""
        taken = sum(x.numel for x in self.inputs.layouts)
        longest = max((size for x in self.inputs.layouts for size in x.shape), default=1)
        given = sum(x.numel for x in self.outputs)
        return max(taken / max(given, 1), longest)


class Bench:
    """Baseline workers of one definition: eager (also the reference), a control like it, compiled.

    Args:
        definition: the contract.
        workloads: at least one.
        settings: of the referee.
        spawn: makes trusted parties.
        side: where they run, and what they are measured against beside the eager reference.
    """

    def __init__(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        settings: RefereeSettings,
        spawn: Spawn,
        *,
        side: DeviceSide = CPU,
    ) -> None:
        self.definition = definition
        self.settings = settings
        self.notes: list[str] = []
        self._task: TaskReport | None = None
        self._spawn = spawn
        self._side = side
        self.parties: dict[str, Party] = {}
        self.courses: list[Course] = []
        self._current: Course | None = None
        self.workloads = len(workloads)
        seed = secrets.randbits(31)
        try:
            self.eager = self._baseline("eager", seed)
            self.weights = self._weights(seed)
            for workload in workloads:
                self.courses.append(self._course(workload))
            self.control = self._baseline("control", seed)
            if settings.compile_baseline:
                for name in side.baselines:
                    self._start_compiled(name, seed)
            self.enter(self.courses[0])
        except PartyFailure as failure:
            self.close()
            raise TargetError(_broken(definition, failure)) from failure
        except BaseException:
            self.close()
            raise

    # -- construction

    def _baseline(self, name: str, seed: int) -> Party:
        party = self._spawn(name)
        self.parties[name] = party
        reply = party.request(
            {
                "op": "reference",
                "definition": self.definition.model_dump(mode="json"),
                "seed": seed,
                "threads": self.settings.threads,
                "device": self._side.device,
                "compile": self._side.baselines.get(name, ""),
            },
            timeout_s=max(120.0, self.settings.call_timeout_s),
        )
        self._reply = reply
        return party

    def _weights(self, seed: int) -> Weights:
        reply = self._reply
        block = Block.create("weights", reply["nbytes"])
        self.eager.request({"op": "export"}, [block.fd])
        block.seal_writes()
        return Weights(block, reply["init"], reply["state"], seed)

    def _start_compiled(self, name: str, seed: int) -> None:
        try:
            party = self._baseline(name, seed)
            party.call_timeout_s = _COMPILE_TIMEOUT_S
            for course in self.courses:
                party.configure(course.body(), course.inputs, course.outputs_bytes)
                self.eager.worker.stop()
                for slot in (0, 1):
                    party.call(slot)
        except PartyFailure as failure:
            tried = "torch.compile" if name == "compile" else name
            self.notes.append(f"{tried} cannot run it ({failure.reason.splitlines()[0][:200]})")
            self.parties.pop(name).close()

    def _course(self, workload: Workload) -> Course:
        eager = self.eager
        if workload.source == "spec":
            arguments, drawing = arguments_of(workload), None
        else:
            reply = eager.request({"op": "describe", "seed": secrets.randbits(60)})
            arguments, drawing = Arguments(reply["arguments"], reply["slot_bytes"]), self._draw
        inputs = Inputs(workload, arguments, drawing)
        course = Course(workload, inputs, False, inputs.slot_bytes)
        self._current = course
        eager.configure(course.body(), inputs, course.outputs_bytes)
        for slot in range(inputs.slots):
            inputs.fill(slot)
        eager.call_timeout_s = max(300.0, self.settings.call_timeout_s)
        shape = eager.request({"op": "shape", "slot": 0})
        # Room for float64 outputs; pages that are not touched cost nothing.
        course.outputs_bytes = max(shape["nbytes64"], inputs.slot_bytes) + (1 << 16)
        if self.definition.differentiable:
            course.outputs_bytes += 4 * (inputs.slot_bytes + self.weights.block.nbytes)
        eager.configure(course.body(), inputs, course.outputs_bytes)
        self._find_mutation(course)
        self._derive_bounds(course)
        return course

    def _draw(self, seed: int) -> list[torch.Tensor]:
        reply = self.eager.request({"op": "draw", "seed": seed})
        if reply["changed"]:
            raise TargetError(
                f"{self.definition.name}: get_inputs() gives other shapes on each call; "
                "give one workload for each shape instead"
            )
        assert self._current is not None
        return self.eager.drawn(self._current.inputs.layouts)

    def _find_mutation(self, course: Course) -> None:
        before = course.inputs.copies(0)
        self.eager.call(0)
        seen = self.eager.fetch_inputs(0)
        if any(not same_bytes(a, b.value) for a, b in zip(before, seen, strict=True)):
            course.copy_inputs = True
            self.notes.append("the reference writes to its inputs; every party was given copies")
            self.eager.configure(course.body(), course.inputs, course.outputs_bytes)

    def _derive_bounds(self, course: Course) -> None:
        draws = [self._bounds_of_draw(course, slot) for slot in (0, 1)]
        course.bounds = [widest(list(leaf)) for leaf in zip(*draws, strict=True)]

    def _bounds_of_draw(self, course: Course, slot: int) -> list[Bound]:
        first = self.expect(course, slot)
        course.scales = [_scale(leaf.value) for leaf in first]
        self.eager.call(slot)
        second = self.eager.fetch(slot)
        bounds = self.bounds_for(course, slot)
        for a, b, bound in zip(first, second, bounds, strict=True):
            if isinstance(a.value, torch.Tensor) and not measure(b.value, a.value, bound).within(bound):
                raise TargetError(
                    f"{self.definition.name} is random: two calls on the same inputs differ; "
                    "seed it, or put dropout in eval mode"
                )
        return bounds

    # -- use

    def check_task(self) -> TaskReport:
        """Whether the task can tell right from wrong; examined once. Afterwards the bounds may be tighter and
        the courses have contents that tell more (`Course.sharper`).

        Raises:
            TargetError: the reference does not survive it.
        """
        if self._task is not None:
            return self._task
        report = TaskReport()
        try:
            for course in self.courses:
                self._current = course
                self.eager.configure(course.body(), course.inputs, course.outputs_bytes)
                report.add(examine_task(self, course, self.settings.task_seconds / len(self.courses)))
        except PartyFailure as failure:
            raise TargetError(_broken(self.definition, failure)) from failure
        finally:
            self.disturbed()
        self._task = report
        return report

    def disturbed(self) -> None:
        """Parties may have been given something else: the next `enter` gives them their workload again."""
        self._current = None

    def enter(self, course: Course) -> None:
        """Give every trusted party the workload."""
        if self._current is course and all(p._outputs is not None for p in self.parties.values()):
            return
        self._current = course
        for party in self.parties.values():
            party.configure(course.body(), course.inputs, course.outputs_bytes)
            party.worker.stop()

    def expect(self, course: Course, slot: int) -> list[Leaf]:
        """The reference's output for a slot."""
        self.eager.call(slot)
        leaves = self.eager.fetch(slot)
        course.outputs = [OutputForm.of(leaf) for leaf in leaves]
        return leaves

    def exact(self, course: Course, slot: int) -> list[Leaf] | None:
        """The reference in float64 for a slot; None where it cannot be computed so."""
        return self._in_float64(
            course, lambda: self.eager.leaves(self.eager.request({"op": "exact", "slot": slot}))
        )

    def _in_float64(self, course: Course, ask: Callable[[], _T]) -> _T | None:
        """What is asked for; None where the reference cannot be computed in float64, which is noted once."""
        if not course.exact_ok:
            return None
        try:
            return ask()
        except PartyFailure as failure:
            if not self.eager.worker.running:
                raise
            course.exact_ok = False
            self.notes.append(f"no float64 reference ({failure.reason.splitlines()[0][:120]}); "
                              "tolerance from the conditioning of the reference")  # fmt: skip
            return None

    def exactness(self, course: Course, slot: int) -> list[Exactness] | None:
        """The reference's last output, which was for this slot, beside the reference in float64; None where
        that cannot be computed."""
        return self._in_float64(course, lambda: self._exactness(course, slot, "float64"))

    def _exactness(self, course: Course, slot: int, against: str) -> list[Exactness]:
        policy = self.definition.tolerance.model_dump(mode="json")
        body = {"op": "exactness", "slot": slot, "against": against, "policy": policy}
        reply = self.eager.request({**body, "reduction": course.reduction})
        return [Exactness(**{**x, "bound": Bound(**x["bound"])}) for x in reply["exactness"]]

    def bounds_for(self, course: Course, slot: int) -> list[Bound]:
        """Bounds from the reference's own error in its last output, which was for this slot."""
        found = self.exactness(course, slot)
        return [x.bound for x in found or self._exactness(course, slot, "moved")]

    def gradients(self, course: Course, slot: int, seed: int) -> tuple[list[Leaf], list[Leaf], list[Bound]]:
        """The reference's gradients for a slot, the same in float64, and bounds from their error.

        Raises:
            TargetError: it has none.
        """
        body = {"slot": slot, "seed": seed}
        try:
            found = self.eager.leaves(self.eager.request({"op": "gradients", **body}))
            exact = self.eager.leaves(self.eager.request({"op": "exact_gradients", **body}))
        except PartyFailure as failure:
            raise TargetError(
                f"{self.definition.name} asks for gradients, and its reference has none "
                f"({failure.reason.splitlines()[0][:200]}); mend it, or ask for the forward pass alone"
            ) from failure
        policy, reduction = self.definition.tolerance, course.reduction
        bounds = [derive(a.value, b.value, policy, reduction) for a, b in zip(found, exact, strict=True)]
        return found, exact, bounds

    def stop(self) -> None:
        """Stop every trusted party until it is called again."""
        for party in self.parties.values():
            party.worker.stop()

    def close(self) -> None:
        for party in self.parties.values():
            party.close()
        for course in self.courses:
            course.inputs.close()
        if self._current is not None:
            self._current.inputs.close()
        if hasattr(self, "weights"):
            self.weights.close()


def _scale(value: object) -> float:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return root_mean_square(value)
    return 0.0


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors hold the same bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = a.contiguous(), b.contiguous()
    return bool(torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8)))


def _broken(definition: Definition, failure: PartyFailure) -> str:
    first = (failure.reason.strip().splitlines() or ["no reason given"])[0][:300]
    return (
        f"the reference of {definition.name} does not run ({first}); run it with python first and mend that"
    )
