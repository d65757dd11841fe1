"""Profile a target: in a child process, so that the supervisor never imports the user's model."""

from __future__ import annotations

from agentforge.devices import DeviceSpec, Roofline
from agentforge.harness.child import ChildFailure, Progress, run_child
from agentforge.schema import Profile, Target, TargetError

_TIMEOUT_S = 1800.0


def profile_target(
    target: Target,
    device: DeviceSpec,
    roofline: Roofline,
    *,
    progress: Progress | None = None,
    traces: int = 5,
) -> Profile:
    """Find where a target's time goes and what is still to be had.

    Args:
        target: from `agentforge.frontends.load_target`.
        device: what it runs on, for threads and cache sizes.
        roofline: measured ceilings, for speed-of-light times.
        progress: receives lines on what is being done.
        traces: forwards that the medians rest on; at least 5 for a report.

    Raises:
        TargetError: the model cannot be profiled; the message says why.
    """
    payload = {
        "target": target.model_dump(mode="json"),
        "device": device.model_dump(mode="json"),
        "roofline": roofline.model_dump(mode="json"),
        "traces": traces,
    }
    try:
        found = run_child(
            "agentforge.profiling.worker:profile",
            payload,
            timeout_s=_TIMEOUT_S,
            memory_bytes=None if target.device == "cpu" else 0,
            progress=progress,
            # Fresh pages cost more than the arithmetic of a pointwise operator; huge ones cost less.
            env={"THP_MEM_ALLOC_ENABLE": "1"},
        )
    except ChildFailure as failure:
        raise TargetError(f"{target.name} cannot be profiled: {failure}") from failure
    return Profile.model_validate(found)
