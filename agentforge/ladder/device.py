"""A device, with what AgentForge does without on it."""

from __future__ import annotations

from pathlib import Path

from agentforge.devices import DeviceSpec, detect, with_fallbacks
from agentforge.devices.fallbacks import known, remember
from agentforge.schema import MachineError

from .climb import climb


def find_device(kind: str, cache: Path) -> DeviceSpec:
    """Detect a device; climb its ladder if that was not done with this driver and toolchain.

    Args:
        kind: as for `detect`.
        cache: folder that remembers ladders.

    Raises:
        UsageError: this machine has no such device.
        MachineError: kernels cannot be judged on it; the message names the missing part.
    """
    found = detect(kind)
    if found.kind == "cuda" and not known(found, cache):
        ladder = climb()
        if broken := ladder.broken:
            raise MachineError(
                f"this GPU cannot be used: {broken.rung} {broken.outcome} ({broken.detail}). "
                f"{broken.fix or 'See `agentforge doctor --gpu`'}, or use --device cpu"
            )
        remember(found, cache, ladder.fallbacks)
    return with_fallbacks(found, cache)
