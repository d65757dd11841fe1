"""What AgentForge does without on a GPU that cannot do everything."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentforge.schema import content_hash
from agentforge.whole_file import whole_file

from ._base import DeviceSpec


class Fallback(StrEnum):
    """One thing that AgentForge does without. It is a fact of a device and is named in each verdict."""

    WEAK_SANDBOX = "weak-sandbox"
    NO_FILTER = "no-filter"
    NO_MEMORY_LIMIT = "no-memory-limit"
    NO_CUDA = "no-cuda"
    NO_TRITON = "no-triton"
    NO_CUPY = "no-cupy"
    HOST_CLOCK = "host-clock"
    NO_CLOCKS = "no-clocks"
    NO_COUNTERS = "no-counters"
    NO_KERNEL_TIMES = "no-kernel-times"
    NO_GRAPHS = "no-graphs"
    NO_STREAMS = "no-streams"
    NO_RECOVERY = "no-recovery"


MEANING = {
    Fallback.WEAK_SANDBOX: "candidates run under resource limits only: they reach the network and your files",
    Fallback.NO_FILTER: "candidates may make any system call",
    Fallback.NO_MEMORY_LIMIT: "no limit on the memory of all of a candidate's processes together",
    Fallback.NO_CUDA: "no kernels in CUDA C++",
    Fallback.NO_TRITON: "no kernels in Triton",
    Fallback.NO_CUPY: "no kernels in CuPy",
    Fallback.HOST_CLOCK: "calls are timed by the host's clock instead of CUDA events",
    Fallback.NO_CLOCKS: "the GPU's clocks and temperature are unknown while it is timed",
    Fallback.NO_COUNTERS: "kernel times instead of hardware counters",
    Fallback.NO_KERNEL_TIMES: "the profile knows times of operators, not of kernels",
    Fallback.NO_GRAPHS: "no CUDA graphs, neither as a baseline nor around the model",
    Fallback.NO_STREAMS: "no model is run on several streams",
    Fallback.NO_RECOVERY: "a kernel that hangs may leave the GPU unusable until it is reset",
}
"""Each fallback in words."""
_KINDS = ("cuda", "null")
"""Kinds of device that have a ladder; tests use the null device instead of a GPU."""


def known(device: DeviceSpec, cache: Path) -> bool:
    """Whether the device's ladder was climbed, or needs not to be."""
    return device.kind not in _KINDS or _file(device, cache).is_file()


def remember(device: DeviceSpec, cache: Path, fallbacks: Iterable[Fallback]) -> None:
    """Keep what a device does without; a new driver or toolchain is another device."""
    place = _file(device, cache)
    place.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(place) as draft:
        draft.write_text(json.dumps(sorted(set(fallbacks))) + "\n")


def with_fallbacks(device: DeviceSpec, cache: Path) -> DeviceSpec:
    """The device with its remembered fallbacks, if there are any."""
    found: Any = []
    if device.kind in _KINDS:
        with suppress(OSError, ValueError):
            found = json.loads(_file(device, cache).read_text())
    values = {f.value for f in Fallback}
    names = [name for name in found if name in values] if isinstance(found, list) else []
    return device.model_copy(update={"fallbacks": tuple(names)}) if names else device


def _file(device: DeviceSpec, cache: Path) -> Path:
    key = content_hash([device.kind, device.name, device.architecture, device.toolchain], length=16)
    return Path(cache) / f"ladder-{key}.json"
