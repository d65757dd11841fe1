"""What no GPU has proven yet: one table for the doctor, the documents and the tests."""

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
    seen: str = ""
    """What a GPU has shown of it so far."""


FEATURES = (
    Feature("the ladder's rungs", "faults at each rung", "ladder", proven=True),
    Feature("Triton kernels", "compiled for three targets, interpreted", "operators",
            seen="ten operators at one size"),
    Feature("CUDA C++ launched by the driver", "compiled for named targets, emulated", "tests", proven=True),
    Feature("CUDA C++ kernels that ship", "compiled for three targets, emulated", "operators",
            seen="nine operators at one size"),
    Feature("CuPy kernels", "compiled for named targets, emulated", "verdict", seen="all checks; no timing"),
    Feature("the referee's workers on CUDA", "the null device", "verdict",
            seen="verdicts of levels quick and full; too slow"),
    Feature("`optimize --device cuda`", "the null device", "optimize", proven=True),
    Feature("CUDA graphs and streams of a model", "simulated devices", "optimize", proven=True),
    Feature("profiles of GPU kernels", "recorded traces", "profile", proven=True),
    Feature("Nsight Compute in a search", "a recorded report", "feedback",
            seen="metrics, class and findings of one attempt"),
)  # fmt: skip
"""Everything that was or is experimental."""


def experimental() -> tuple[Feature, ...]:
    """The features that no GPU has proven yet."""
    return tuple(feature for feature in FEATURES if not feature.proven)


def feature_table() -> str:
    """The rows of the table in docs/gpu.md."""
    rows = (f"| {f.name} | {f.without} | {_state(f)} |" for f in FEATURES)
    return "\n".join(rows)


def _state(feature: Feature) -> str:
    if feature.proven:
        return "yes"
    return f"{f'in part ({feature.seen})' if feature.seen else 'no'}: `run.py {feature.piece}`"
