"""Profile a target in a child process, so that the supervisor never imports the user's model."""

from __future__ import annotations

from agentforge.devices import DeviceSpec, Roofline
from agentforge.isolation.child_process import ChildFailure, Progress, run_child
from agentforge.schema import MemoryShortageError, Profile, Target, TargetError

from .reasons import reason_of

_TIMEOUT_S = 1800.0


def profile_target(
    target: Target,
    device: DeviceSpec,
    roofline: Roofline,
    *,
    progress: Progress | None = None,
    traces: int = 5,
    ablation: bool = False,
) -> Profile:
    """Measure where a target's time goes and how much can be gained.

    Args:
        traces: number of forwards for the medians; at least 5 for a report.
        ablation: measure `Bottleneck.ablation_share` too, which takes up to 8 s a bottleneck.

    Raises:
        TargetError: the model cannot be profiled; `MemoryShortageError` if memory is short.
    """
    payload = {
        "target": target.model_dump(mode="json"),
        "device": device.model_dump(mode="json"),
        "roofline": roofline.model_dump(mode="json"),
        "traces": traces,
        "ablation": ablation,
    }
    try:
        found = run_child(
            "agentforge.profiling.worker:profile",
            payload,
            timeout_s=_TIMEOUT_S,
            memory_bytes=None if target.device == "cpu" else 0,
            progress=progress,
            # New pages cost more than a pointwise operator's arithmetic; huge pages cost less.
            env={"THP_MEM_ALLOC_ENABLE": "1"},
        )
    except ChildFailure as failure:
        kind = MemoryShortageError if failure.kind == "out_of_memory" else TargetError
        advice = "; `agentforge --debug profile ...` shows all of it" if failure.kind == "raised" else ""
        raise kind(f"{target.name} cannot be profiled: {reason_of(failure)}{advice}") from failure
    return Profile.model_validate(found)
