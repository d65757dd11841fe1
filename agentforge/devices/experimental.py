"""What has not run on a GPU yet: one table for the doctor, the documents and the tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    """Something that only a GPU can prove."""

    name: str
    without: str
    """How it was tested without a GPU."""
    piece: str
    """Piece of `benchmarks/gpu/run.py` that proves it."""
    proven: bool = False
    """True if `benchmarks/results/gpu-PIECE.json` says so; a test compares."""


FEATURES = (
    Feature("the ladder's rungs", "faults at each rung", "ladder"),
    Feature("Triton kernels", "compiled for three targets, interpreted", "operators"),
    Feature("CUDA C++ launched by the driver", "compiled for named targets, emulated", "tests"),
    Feature("CUDA C++ kernels that ship", "compiled for three targets, emulated", "operators"),
    Feature("CuPy kernels", "compiled for named targets, emulated", "tests"),
    Feature("the referee's workers on CUDA", "the null device", "verdict"),
    Feature("`optimize --device cuda`", "the null device", "optimize"),
    Feature("CUDA graphs and streams of a model", "simulated devices", "optimize"),
    Feature("profiles of GPU kernels", "recorded traces", "profile"),
    Feature("Nsight Compute in a search", "a recorded report", "feedback"),
)
"""Everything that was or is experimental."""


def experimental() -> tuple[Feature, ...]:
    """The features that have not run on a GPU yet."""
    return tuple(feature for feature in FEATURES if not feature.proven)


def feature_table() -> str:
    """The rows of the table in docs/gpu.md."""
    rows = (
        f"| {f.name} | {f.without} | {'yes' if f.proven else f'no: `run.py {f.piece}`'} |" for f in FEATURES
    )
    return "\n".join(rows)
