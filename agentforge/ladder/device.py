"""A device, with what AgentForge does without on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentforge.devices import DeviceSpec, detect, with_fallbacks
from agentforge.devices.fallbacks import known, remember
from agentforge.schema import MachineError

from ._base import RungResult
from .climb import climb


def find_device(kind: str, cache: Path, progress: Callable[[str], None] | None = None) -> DeviceSpec:
    """Detect a device; climb its ladder if that was not done with this driver and toolchain.

    Args:
        kind: as for `detect`.
        cache: folder that remembers ladders.
        progress: receives a sentence for each rung.

    Raises:
        UsageError: this machine has no such device.
        MachineError: kernels cannot be judged on it; the message names the missing part.
    """
    found = detect(kind)
    if found.kind == "cuda" and not known(found, cache):

        def say(result: RungResult) -> None:
            if progress:
                progress(f"first use of this GPU: {result.rung} {result.outcome}")

        ladder = climb(on_rung=say)
        if broken := ladder.broken:
            raise MachineError(
                f"this GPU cannot be used: {broken.rung} {broken.outcome} ({broken.detail}). "
                f"{broken.fix or 'See `agentforge doctor --gpu`'}, or use --device cpu"
            )
        remember(found, cache, ladder.fallbacks)
    return with_fallbacks(found, cache)
