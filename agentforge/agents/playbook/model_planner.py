"""Plan a whole model by Amdahl's law: most seconds first; vendor-library operators stay."""

from __future__ import annotations

from collections.abc import Iterable

from agentforge.agents._base import ModelContext
from agentforge.schema import (
    Bottleneck,
    CallSite,
    Citation,
    ModelPlan,
    Move,
    MoveKind,
    Profile,
    RegionPlan,
    obstacle,
)

_EPILOGUES = tuple(f"aten.{name}." for name in ("gelu", "silu", "hardswish", "sigmoid", "tanh", "add", "mul"))
"""Operators that a convolution from packed weights can apply to its results."""


class PlaybookModelPlanner:
    """Orders regions by expected end-to-end savings. Deterministic and stateless."""

    name = "playbook"

    def plan_model(self, whole: ModelContext) -> ModelPlan:
        """See `ModelPlanner.plan_model`."""
        ordered = by_gain(whole)
        regions = tuple(_region(b) for b in ordered)
        largest = next((b for b in ordered if b.optimizable), None)
        evidence = () if largest is None else (Citation(metric="gain_s", value=largest.gain_s),)
        diagnosis = "" if largest is None else f"{largest.definition.name} has the most seconds to gain"
        return ModelPlan(
            regions=fused_first(regions),
            moves=moves_for(whole.profile),
            expected_speedup=amdahl(whole.profile, regions),
            diagnosis=diagnosis,
            evidence=evidence,
            author=self.name,
        )


def moves_for(profile: Profile) -> tuple[Move, ...]:
    """Moves that the profile gives a reason for, in the order of carrying out; the referee decides later."""
    convolved = _time_of(profile, "aten.conv2d.")
    normalised = _time_of(profile, "aten.batch_norm.")
    followed = _time_of(profile, *_EPILOGUES)
    shared = [m for m in profile.merges if m.definition.op_type == "gemm"]
    reasons = {
        MoveKind.FOLD_BATCH_NORM: normalised and f"batch norms take part in {normalised * 1e3:.3g} ms",
        MoveKind.MERGE_PRODUCTS: shared and f"products of one input: {', '.join(_names(shared))}",
        MoveKind.CHANNELS_LAST: convolved and f"convolutions take {convolved * 1e3:.3g} ms",
        MoveKind.FUSE_EPILOGUES: convolved
        and followed
        and f"operators that can end one: {followed * 1e3:.3g} ms",
        MoveKind.FOLD_CONSTANTS: profile.call_sites and "values that no input reaches need no forward",
    }
    return tuple(Move(kind=kind, why=why) for kind, why in reasons.items() if isinstance(why, str))


def _time_of(profile: Profile, *operators: str) -> float:
    """Seconds of the call sites with one of these operators in one forward."""

    def has(site: CallSite) -> bool:
        return any(name.startswith(operators) for name in site.operators)

    return sum(site.time_s * site.calls for site in profile.call_sites if has(site))


def _names(bottlenecks: Iterable[Bottleneck]) -> list[str]:
    return list(dict.fromkeys(b.definition.name for b in bottlenecks))


def by_gain(whole: ModelContext) -> list[Bottleneck]:
    """Regions by possible savings in seconds times their probability, largest first."""
    return sorted(
        whole.profile.bottlenecks,
        key=lambda b: b.gain_s * whole.success.get(b.definition.hash, 1.0),
        reverse=True,
    )


def fused_first(regions: Iterable[RegionPlan]) -> tuple[RegionPlan, ...]:
    """Regions to work on before regions that stay, each in the given order."""
    return tuple(sorted(regions, key=lambda region: not region.fuse))


def amdahl(profile: Profile, regions: Iterable[RegionPlan]) -> float:
    """Speedup of the whole model over eager if each fused region reaches its expected speedup."""
    return profile.faster({r.bottleneck: r.expected_speedup for r in regions if r.fuse})


def limit(bottleneck: Bottleneck) -> float:
    """Speedup of a region at its speed of light."""
    return bottleneck.time_s / bottleneck.sol_s if bottleneck.sol_s > 0 else 1e4


def _region(b: Bottleneck) -> RegionPlan:
    reachable = max(b.time_s - b.gain_s, b.time_s / limit(b))
    fuse = b.optimizable and b.gain_s > 0
    why = f"{b.gain_s * 1e3:.3g} ms of {b.time_s * 1e3:.3g} ms can be saved"
    if not fuse:
        why = "nothing is left to gain" if b.optimizable else obstacle(b.definition.op_type)
    return RegionPlan(
        bottleneck=b.definition.hash,
        name=b.definition.name,
        fuse=fuse,
        expected_speedup=b.time_s / reachable if fuse and reachable > 0 else 1.0,
        why=why,
    )
