"""`Target`, `CallSite`, `Bottleneck`, `Profile`: what the user points at and where its time goes."""

from __future__ import annotations

from pydantic import Field

from ._base import FrozenModel, NonEmptyString
from .definition import Definition
from .feedback import Bound
from .workload import TensorInput, Workload


class Target(FrozenModel):
    """What the user points at, reduced to a whole-model `Definition` (`op_type` `model`)."""

    name: NonEmptyString
    """Short, from the file's name."""
    origin: str
    """What the user typed."""
    definition: Definition
    """The whole model, in KernelBench's convention."""
    workloads: tuple[Workload, ...] = Field(min_length=1)
    """Example inputs, `source` = `reference`."""
    device: str = "cpu"
    notes: tuple[str, ...] = ()
    """What a reader must know: an output that does not depend on the input, state kept between calls."""


class CallSite(FrozenModel):
    """One place in the target's forward where a region of operators runs."""

    name: NonEmptyString
    """Unique in the profile, for example `layers.3.norm/rms_norm`."""
    unit: str = ""
    """Path of the exported submodule whose graph holds the nodes; empty for the whole model."""
    module_path: str = ""
    """Module that the operators were written in."""
    nodes: tuple[str, ...]
    """Names of the graph's nodes in this region, in topological order."""
    operators: tuple[str, ...]
    """Their operators, e.g. `aten.rsqrt.default`."""
    inputs: tuple[TensorInput, ...] = ()
    """Tensors that enter the region, with the shapes, dtypes and strides really seen."""
    outputs: tuple[TensorInput, ...] = ()
    """Tensors that leave it."""
    time_s: float = Field(ge=0)
    """Median self time of one call, seconds."""
    flops: float = Field(default=0.0, ge=0)
    """Floating-point operations of one call."""
    bytes: float = Field(default=0.0, ge=0)
    """Least bytes moved: every distinct input read once, every output written once."""
    sol_s: float = Field(default=0.0, ge=0)
    """Speed-of-light seconds on the measured roofline: max(flops / peak, bytes / bandwidth)."""
    kernels: tuple[str, ...] = ()
    """On a GPU, the kernels, copies and fills that its operators launch, in their order."""


class Bottleneck(FrozenModel):
    """Call sites that share a `Definition`."""

    definition: Definition
    workloads: tuple[Workload, ...] = Field(min_length=1)
    call_sites: tuple[CallSite, ...] = Field(min_length=1)
    time_s: float
    """Seconds of all call sites in one forward."""
    share: float
    """Of the target's time, 0 to 1."""
    ablation_share: float | None = None
    """The share again, as the time saved when the region's outputs are given: a check."""
    sol_s: float
    """Speed-of-light seconds of all call sites."""
    bound: Bound
    """What limits it at its speed of light or below it."""
    gain_s: float
    """End-to-end seconds still to be had: time_s - time at the reachable headroom."""
    speedup_limit: float
    """Amdahl: 1 / (1 - share (1 - 1/s)) with s = time_s / sol_s."""
    optimizable: bool = True
    """False where we bring no way to beat the vendor library (a bare GEMM)."""


class Profile(FrozenModel):
    """Where a target's time goes on a device."""

    target: str
    """Hash of the target's definition."""
    device: str
    architecture: str
    total_s: float
    """Median seconds of one eager forward."""
    traces: int
    """Forwards that the medians rest on."""
    attributed: float
    """Sum of call sites' times / total time."""
    call_sites: tuple[CallSite, ...]
    bottlenecks: tuple[Bottleneck, ...]
    """Ranked by `gain_s`, largest first."""
    notes: tuple[str, ...] = ()
    """What a reader must know: a module that could not be exported, an unsteady trace."""
