"""`Target`, `CallSite`, `Bottleneck`, `Profile`: what the user points at and where its time goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pydantic import Field

from ._base import FrozenModel, NonEmptyString
from .definition import Definition
from .feedback import Bound
from .workload import TensorInput, Workload


class SizeRange(FrozenModel):
    """A size of a target's inputs that varies between calls."""

    name: NonEmptyString
    """What the user calls it: `batch`, or `x.2`."""
    low: int = Field(ge=1)
    high: int = Field(ge=1)
    """Largest size, included."""
    places: tuple[tuple[str, int], ...] = Field(min_length=1)
    """Name of an input and its dimension, for each dimension with this size."""


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
    shapes: tuple[SizeRange, ...] = ()
    """Sizes that vary. The workloads are the calls that are measured: the corners, and sizes between them."""
    probes: tuple[Workload, ...] = ()
    """Further calls within these sizes: the artifact is checked on them."""
    device: str = "cpu"
    notes: tuple[str, ...] = ()
    """What a reader must know: an output that does not depend on the input, state kept between calls."""

    @property
    def generation(self) -> bool:
        """True if its workloads are the prefill and the decode step of a language model."""
        return tuple(w.name for w in self.workloads) == ("prefill", "decode")

    @property
    def listed(self) -> bool:
        """True if its reference lists the workloads."""
        return any(w.key for w in self.workloads)

    @property
    def ranged(self) -> bool:
        """True if its workloads may be one call at several sizes."""
        return bool(self.shapes) or self.listed


class CallSite(FrozenModel):
    """One place in the target's forward where a region of operators runs."""

    name: NonEmptyString
    """Unique in the profile, for example `layers.3.norm/rms_norm`."""
    unit: str = ""
    """Path of the exported submodule whose graph contains the nodes; empty for the whole model. `@` and the
    workload's name follow if the target has several workloads."""
    module_path: str = ""
    """Module that the operators were written in."""
    nodes: tuple[str, ...]
    """Names of the graph's nodes in this region, in topological order."""
    operators: tuple[str, ...]
    """Their operators, e.g. `aten.rsqrt.default`."""
    kinds: dict[str, int] = {}
    """How many of them are of each kind that does work: `pointwise`, `reduction`; empty if unknown. A whole
    reference that cannot be traced, such as a C function, is one operator of a kind that no other has."""
    inputs: tuple[TensorInput, ...] = ()
    """Tensors that enter the region, with the shapes, dtypes and strides really seen."""
    outputs: tuple[TensorInput, ...] = ()
    """Tensors that leave it."""
    calls: int = Field(default=1, ge=1)
    """Calls of its unit in one forward."""
    time_s: float = Field(ge=0)
    """Median self time of one call, seconds."""
    flops: float = Field(default=0.0, ge=0)
    """Floating-point operations of one call."""
    bytes: float = Field(default=0.0, ge=0)
    """Least bytes moved: every distinct input read once, every output written once."""
    dtype: str = ""
    """Dtype whose peak limits its operations, or `tf32`; empty for that of its outputs."""
    sol_s: float = Field(default=0.0, ge=0)
    """Speed-of-light seconds on the measured roofline: max(flops / peak, bytes / bandwidth)."""
    kernels: tuple[str, ...] = ()
    """On a GPU, the kernels, copies and fills that its operators launch, in their order."""

    @property
    def unit_nodes(self) -> tuple[tuple[str, str], ...]:
        """Its nodes, each with its unit: unique in the profile."""
        return tuple((self.unit, node) for node in self.nodes)

    def within(self, covered: Collection[tuple[str, str]]) -> bool:
        """Whether one of its nodes is among these."""
        return any(node in covered for node in self.unit_nodes)


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
    """The share again, as the time saved when the region's outputs are given: a check. None in a run."""
    sol_s: float
    """Speed-of-light seconds of all call sites."""
    bound: Bound
    """What limits it at its speed of light or below it."""
    gain_s: float
    """End-to-end seconds that can be gained: time_s - time at the reachable headroom."""
    speedup_limit: float
    """Amdahl: 1 / (1 - share (1 - 1/s)); s = time_s / the larger of sol_s and the cost of its calls."""
    optimizable: bool = True
    """False if no template could beat the vendor's library (a bare GEMM), or an operator must not move."""

    @property
    def sol_per_call_s(self) -> float:
        """Speed-of-light seconds of one call, the weighted mean over the workloads; 0 if not known."""
        return self.sol_s / sum(w.weight for w in self.workloads)

    def saved_s(self, speedups: Mapping[str, float]) -> float:
        """Seconds that a solution saves in one forward; 0 if its definition has no speedup over eager."""
        return self.time_s * (1 - 1 / speedups.get(self.definition.hash, 1.0))

    def outside(self, covered: Collection[tuple[str, str]]) -> Bottleneck | None:
        """The bottleneck without the call sites that have one of these nodes (unit and name); None if no call
        site is left. Times are those of the other call sites."""
        kept = tuple(s for s in self.call_sites if not s.within(covered))
        if len(kept) == len(self.call_sites) or not kept:
            return self if kept else None
        part = sum(s.time_s * s.calls for s in kept) / (
            sum(s.time_s * s.calls for s in self.call_sites) or 1.0
        )
        times = ("time_s", "share", "sol_s", "gain_s")
        calls = sum(s.calls for s in kept) / (sum(s.calls for s in self.call_sites) or 1)
        return self.model_copy(
            update={
                "call_sites": kept,
                "workloads": tuple(w.model_copy(update={"weight": w.weight * calls}) for w in self.workloads),
                "ablation_share": None,
                **{name: getattr(self, name) * part for name in times},
            }
        )


def obstacle(op_type: str) -> str:
    """What keeps a region as it is that is not `optimizable`."""
    vendor = op_type in ("gemm", "conv", "attention", "embedding")
    return "the vendor's library computes it" if vendor else "its operators have to stay as they are"


def ranked(bottlenecks: Iterable[Bottleneck]) -> tuple[Bottleneck, ...]:
    """Bottlenecks by their possible gain, largest first, then by their time."""
    return tuple(sorted(bottlenecks, key=lambda b: (b.gain_s, b.time_s), reverse=True))


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
    seconds: float = 0.0
    """Wall time of the run until it had this profile; 0 in a profile without a run."""
    attributed: float
    """Sum of call sites' times / total time."""
    least_bytes: float = 0.0
    """Least bytes of one forward as a whole: every input and weight read once, every output written once. 0
    if it was not captured as one graph."""
    workload_bytes: dict[str, float] = {}
    """The same of each workload by name, if the reference lists them and each was captured as one graph."""
    call_sites: tuple[CallSite, ...]
    bottlenecks: tuple[Bottleneck, ...]
    """Ranked by `gain_s`, largest first."""
    tokens_per_second: dict[str, float] = {}
    """Of eager in `prefill` and `decode`, if the target is a generation."""
    notes: tuple[str, ...] = ()
    """What a reader must know: a module that could not be exported, an unsteady trace."""
    merges: tuple[Bottleneck, ...] = ()
    """Neighbouring regions that a plan may merge, products included; they overlap with `bottlenecks`."""

    def merged(self, chosen: Collection[str]) -> Profile:
        """The profile with some of `merges` (hashes of definitions) in the place of what they cover.

        Raises:
            ValueError: two of them overlap.
        """
        new = tuple(b for b in self.merges if b.definition.hash in chosen)
        nodes = [node for b in new for s in b.call_sites for node in s.unit_nodes]
        covered = frozenset(nodes)
        if len(covered) < len(nodes):
            raise ValueError("merged regions overlap")
        if not new:
            return self
        kept = [rest for b in self.bottlenecks if (rest := b.outside(covered)) is not None]
        sites = [s for s in self.call_sites if not s.within(covered)]
        return self.model_copy(
            update={
                "bottlenecks": ranked((*new, *kept)),
                "call_sites": (*sites, *(s for b in new for s in b.call_sites)),
                "merges": (),
            }
        )

    def faster(self, speedups: Mapping[str, float]) -> float:
        """Speedup of the whole over eager if bottlenecks become this many times faster, by Amdahl's law.

        Regions that were timed alone may take longer than all of them together in the model; then the sum
        of their times counts as the whole.

        Args:
            speedups: over eager, by hash of the definition.
        """
        whole = max(self.total_s, sum(b.time_s for b in self.bottlenecks)) or 1.0
        return whole / (whole - sum(b.saved_s(speedups) for b in self.bottlenecks))

    def with_solutions(self, speedups: Mapping[str, float]) -> Profile:
        """The profile with faster solutions in place: computed by Amdahl's law, not measured again.

        Times, shares, gains, limits and the order of the bottlenecks are those that remain. Call sites keep
        their eager times.

        Args:
            speedups: over eager, by hash of the definition.
        """
        faster = self.faster(speedups)

        def left(b: Bottleneck) -> Bottleneck:
            saved = b.saved_s(speedups)
            part = saved / b.time_s if b.time_s else 0.0
            possible = max(0.0, 1 - 1 / b.speedup_limit - b.share * part) * faster
            changes = {
                "time_s": b.time_s - saved,
                "share": min(1.0, b.share * (1 - part) * faster),
                "gain_s": max(0.0, b.gain_s - saved),
                "speedup_limit": 1 / max(1 - possible, 1e-9),
                "ablation_share": None,
            }
            return b.model_copy(update=changes)

        changes = {"total_s": self.total_s / faster, "bottlenecks": ranked(map(left, self.bottlenecks))}
        return self.model_copy(update=changes)

    def without_kernel(self, least: float = 0.01) -> tuple[CallSite, ...]:
        """Call sites of at least this share of the time that belong to no bottleneck, the largest first."""
        listed = {site.name for bottleneck in self.bottlenecks for site in bottleneck.call_sites}
        others = [
            s for s in self.call_sites if s.name not in listed and s.calls * s.time_s >= least * self.total_s
        ]
        return tuple(sorted(others, key=lambda s: s.calls * s.time_s, reverse=True))
