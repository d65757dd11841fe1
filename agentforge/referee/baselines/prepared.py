"""A workload that is ready to run, and variants of it with other inputs."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from agentforge.schema import Definition, EvaluationStatus, Workload

from ..comparison.tolerance import Bound
from ..inputs.argument_variants import replaced
from ..inputs.inputs import Inputs
from ..inputs.transforms import Content
from ..workers.failures import WorkerFailure
from ..workers.memory.output_memory import Sharing
from ..workers.memory.shared_memory import Layout, aligned
from ..workers.pytree import Leaf

OF_INPUTS = "arithmetic", "chosen", "as_floats", "thresholds", "compared", "places", "measured"
"""What `Operators.of_inputs` says of a workload's inputs."""
_UNREADABLE = EvaluationStatus.INCORRECT_SHAPE, EvaluationStatus.CHEATING
"""Statuses of outputs of the reference that cannot be compared, such as tensor subclasses."""


@dataclass(frozen=True)
class OutputForm:
    """Path and size of one leaf of an output."""

    path: str
    numel: int = 0
    """Elements of a tensor; 0 for a scalar."""
    nbytes: int = 0
    integer: bool = False
    """Whether it is a tensor of integers or booleans."""

    @staticmethod
    def of(leaf: Leaf) -> OutputForm:
        value = leaf.value
        if not isinstance(value, torch.Tensor):
            return OutputForm(leaf.path)
        integer = not (value.is_floating_point() or value.is_complex())
        return OutputForm(leaf.path, value.numel(), value.nbytes, integer)


@dataclass
class PreparedWorkload:
    """One workload with its inputs, the form of its output, and the error bounds."""

    workload: Workload
    inputs: Inputs
    outputs_bytes: int
    written: list[int] = field(default_factory=list)
    """Inputs that the reference writes to. Every worker gets copies of them, and what it left there counts as
    a part of its answer."""
    state: list[str] = field(default_factory=list)
    """Buffers and parameters that the reference's calls change."""
    copy_inputs: bool = False
    """Give the worker copies of all inputs."""
    bounds: list[Bound] = field(default_factory=list)
    """One for each leaf: the loosest over the draws."""
    strict: bool = False
    """The bounds are half of what the policy allows, because more accepts wrong answers."""
    outputs: list[OutputForm] = field(default_factory=list)
    """Form of the reference's last output."""
    scales: list[float] = field(default_factory=list)
    """Root mean square of each leaf, of one draw; 0 if it is no floating-point tensor."""
    guards: list[int] = field(default_factory=list)
    """Offsets of inaccessible pages within the inputs, in bytes."""
    exposing: list[Content] = field(default_factory=list)
    """Input transformations that expose wrong answers which usual inputs accept."""
    open_order: bool = False
    """The reference runs an operator whose order among equal values torch leaves open."""
    rounds: bool = True
    """The reference computes with numbers that are rounded, not with integers alone."""
    lowers: bool = False
    """The reference computes a part in 16-bit floats, from wider numbers."""
    drawn_numbers: bool = False
    """`get_inputs()` draws Python numbers. Every call has those of one draw."""
    arithmetic: list[int] = field(default_factory=list)
    """Inputs of 64-bit integers that the reference only computes with, see `operators`."""
    chosen: list[int] = field(default_factory=list)
    """Such inputs among whose results constants choose."""
    as_floats: list[int] = field(default_factory=list)
    """Such inputs that the reference makes floats of; what it does with these is not known."""
    thresholds: list[tuple[int, int]] = field(default_factory=list)
    """Numbers of inputs with integers that the reference tells from their neighbours by a constant."""
    compared: list[int] = field(default_factory=list)
    """Numbers of inputs with integers that the reference asks whether they are less or more than others."""
    places: list[int] = field(default_factory=list)
    """Numbers of inputs with integers that are only places where the reference reads, or adds."""
    measured: list[int] = field(default_factory=list)
    """Numbers of inputs whose sizes the reference's own code reads."""
    sharing: Sharing = field(default_factory=Sharing)
    """What the reference's outputs were seen to share."""
    exact_ok: bool = True
    """False if the reference cannot be computed in float64."""

    def body(self) -> dict[str, Any]:
        """The message that gives a worker this workload."""
        return {
            "arguments": self.inputs.arguments.encoded,
            "slot_bytes": self.inputs.slot_bytes,
            "slots": self.inputs.slots,
            "copy": self.copy_inputs,
            "written": self.written,
            "guards": self.guards,
            "sharing": self.sharing.to_json(),
        }

    @property
    def reduction(self) -> float:
        """Estimated length of a sum: the larger of input elements per output element and the longest
        dimension of an input."""
        taken = sum(x.numel for x in self.inputs.layouts)
        longest = max((size for x in self.inputs.layouts for size in x.shape), default=1)
        given = sum(x.numel for x in self.outputs)
        return max(taken / max(given, 1), longest)


def laid_out(
    prepared: PreparedWorkload, content: Sequence[torch.Tensor], encoded: Any = None, *, shifted: bool = False
) -> PreparedWorkload:
    """The workload with other inputs, stored one after the other; the caller closes its `inputs`.

    Args:
        encoded: other arguments, with as many tensors.
        shifted: each begins one element after a multiple of 64 bytes, as slices do.
    """
    layouts, offset = [], 0
    for tensor in content:
        first = tensor.element_size() if shifted else 0
        layouts.append(Layout.of(tensor, offset + first))
        offset += aligned(layouts[-1].nbytes + first)
    return _placed(prepared, content, layouts, offset, encoded)


def guarded(prepared: PreparedWorkload, content: Sequence[torch.Tensor]) -> PreparedWorkload:
    """As `laid_out`, with an inaccessible page before the first input and after each input's end."""
    layouts, guards, offset = [], [0], mmap.PAGESIZE
    for tensor in content:
        layout = Layout.of(tensor)
        end = -(-(offset + aligned(layout.nbytes)) // mmap.PAGESIZE) * mmap.PAGESIZE
        layouts.append(layout.at(end - aligned(layout.nbytes)))
        guards.append(end)
        offset = end + mmap.PAGESIZE
    variant = _placed(prepared, content, layouts, offset)
    # Slots follow one another. Only the first one is used, and its pages are guarded.
    variant.guards = guards
    return variant


def _placed(
    prepared: PreparedWorkload,
    content: Sequence[torch.Tensor],
    layouts: Sequence[Layout],
    offset: int,
    encoded: Any = None,
) -> PreparedWorkload:
    encoded = encoded or prepared.inputs.arguments.encoded
    arguments = type(prepared.inputs.arguments)(replaced(encoded, layouts), offset)
    inputs = Inputs(prepared.workload, arguments, None)
    inputs.give(0, content)
    bytes_needed = max(prepared.outputs_bytes, offset + (1 << 16))
    return PreparedWorkload(
        prepared.workload,
        inputs,
        bytes_needed,
        prepared.written,
        open_order=prepared.open_order,
        rounds=prepared.rounds,
        exact_ok=prepared.exact_ok,
    )


def broken_reference(definition: Definition, failure: WorkerFailure) -> str:
    """Message for a reference that does not run, or whose output cannot be read."""
    first = (failure.reason.strip().splitlines() or ["no reason given"])[0][:300]
    if failure.status in _UNREADABLE:
        return f"the reference of {definition.name} cannot be used: {first}"
    return f"the reference of {definition.name} does not run ({first}); run it with python first and fix it"
