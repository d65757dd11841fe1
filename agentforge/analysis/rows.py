"""The columns of each table: a field is a column, its docstring the meaning with the unit."""

from __future__ import annotations

from datetime import datetime

from agentforge.schema import FrozenModel


class RunRow(FrozenModel):
    """A run."""

    run: str
    """Identifier."""
    name: str
    """Of the target."""
    origin: str
    """What the user typed."""
    device: str
    status: str
    """`created`, `profiling`, `searching`, `stitching`, `finished`, `interrupted`, `failed`."""
    created: datetime
    """UTC."""
    seconds: float
    """Wall time over all sessions."""
    artifact: str
    """Folder; empty before there is one."""
    error: str
    """Why it failed."""


class BottleneckRow(FrozenModel):
    """A bottleneck of a run's profile, with what became of it."""

    bottleneck: str
    """Name of its definition."""
    definition: str
    """Hash."""
    op_type: str
    bound: str
    """`memory`, `compute`, `latency`, `occupancy`, `overhead`."""
    optimizable: bool
    """False if the vendor's library computes it."""
    call_sites: int
    share: float
    """Of the target's eager time, 0 to 1."""
    time_s: float
    """Eager seconds of all its call sites in one forward."""
    sol_s: float
    """Speed-of-light seconds of all its call sites."""
    gain_s: float
    """End-to-end seconds that could be gained when it was profiled."""
    speedup_limit: float
    """Of the whole model if it ran at its speed of light (Amdahl)."""
    attempts: int
    failed: int
    """Attempts that brought no correct solution."""
    strategy: str
    """Of the fastest verified solution; empty if there is none."""
    speedup_eager: float | None
    """Of that solution, eager time / its time."""
    speedup_compile: float | None
    """torch.compile's time / its time."""
    outcome: str
    """`integrated`, or why the region keeps what it had."""


class AttemptRow(FrozenModel):
    """An attempt of a run."""

    number: int
    """1-based, in the order of creation within the run."""
    parent: int | None
    """Number of the attempt that it repairs or improves; missing at a root."""
    bottleneck: str
    """Name of its definition."""
    strategy: str
    language: str
    """Of the solution: `cpp`, `triton`, `cuda`, ..."""
    author: str
    """Of the solution."""
    diagnosis: str
    """The plan's."""
    expected_speedup: float | None
    """Of the plan, over the best baseline."""
    state: str
    """How far it came: `planned`, `coded`, `evaluated`, `done`, `failed`."""
    status: str
    """The referee's verdict: `PASSED`, `COMPILE_ERROR`, ...; empty before there is one."""
    evidence: str
    """`verified`, `suspicious`, `unverified`."""
    level: str
    """Of the evaluation: `quick` or `full`."""
    promoted: bool
    """Verified, and faster than eager and all attempts at its bottleneck before it."""
    latency_s: float | None
    """Median seconds a call."""
    sol_s: float | None
    """Speed-of-light seconds a call."""
    speedup_eager: float | None
    """Eager time / its time."""
    eager_low: float | None
    """Lower end of the 95% interval."""
    eager_high: float | None
    """Upper end."""
    speedup_compile: float | None
    """torch.compile's time / its time."""
    compile_low: float | None
    """Lower end of the 95% interval."""
    compile_high: float | None
    """Upper end."""
    speedup_best: float | None
    """The fastest baseline's time / its time."""
    best_low: float | None
    """Lower end of the 95% interval."""
    best_high: float | None
    """Upper end."""
    bound: str
    """What limits it by what was measured of it: `memory`, `compute`, ..."""
    critique: str
    """Kind of the judge's answer: `repair`, `optimize`, `accept`, `abandon`."""
    cause: str
    """Of the failure or of the limit, as the judge says."""
    change: str
    """What the judge proposes."""
    lesson: str
    """What the judge says that it teaches."""
    error: str
    """Why no solution came out."""
    seconds: float
    """Wall time of the attempt."""
    tokens_in: int
    """Of language models."""
    tokens_out: int
    dollars: float | None
    """Missing if a price is unknown."""
    solution: str
    """Hash."""
    evaluation: str
    """Identifier."""


class _OfAttempt(FrozenModel):
    number: int
    """Of the attempt."""
    bottleneck: str
    """Name of its definition."""


class MetricRow(_OfAttempt):
    """A value that was measured of an attempt's solution."""

    strategy: str
    kernel: str
    """Empty if it is of the whole solution."""
    metric: str
    """`dram__bytes.sum.per_second`, `achieved_bandwidth`, `vectorised_loops`, ..."""
    value: float
    unit: str
    """As the source names it; empty or `1` if it has none."""
    source: str
    """`ncu`, `profiler`, `roofline`, `compiler`, `referee`."""
    solution: str
    """Hash of the very solution that was measured."""
    evaluation: str
    """Identifier."""


class KernelRow(_OfAttempt):
    """A kernel or torch operator that did an attempt's work, as the referee saw it run."""

    kernel: str
    own: bool
    """The candidate's own; False for an operator of torch."""
    calls: int
    """In one call of the solution."""
    share: float
    """Of the call's time, 0 to 1; 0 if it was not measured."""


class ResourceRow(_OfAttempt):
    """What a kernel of an attempt takes of a GPU's multiprocessor, as the assembler says."""

    kernel: str
    target: str
    """`sm_80`, `sm_90`, ..."""
    registers: int
    """Of each thread."""
    shared_bytes: int
    """Of a block."""
    spill_store_bytes: int
    """Of each thread, written to local memory because registers ran out."""
    spill_load_bytes: int
    """Of each thread, read back from there."""
    threads: int
    """Of a block; 0 if unknown."""
    occupancy: float | None
    """Warps that fit on a multiprocessor / warps that it can hold, 0 to 1."""


class FindingRow(_OfAttempt):
    """What a tool says about an attempt's kernel or one of its lines."""

    source: str
    """`ncu-rule`, `ncu-line`, `compiler`."""
    kernel: str
    title: str
    message: str
    file: str
    """Of the solution."""
    line: int | None
    """1-based; missing if it is about no line."""
    text: str
    """Of that line."""
    share: float | None
    """Of the kernel's samples that fell on the line, 0 to 1."""
    estimated_speedup: float | None
    """Speedup that the tool expects of a fix."""
