"""Attacks on timers on a GPU. Neither `referee.timing.gpu` nor the referee may be fooled."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import torch

from agentforge.referee.timing.gpu.device import TorchGpu, _runtime

from . import hostile
from .compare import compare

_TOO_GOOD = 1.3
"""An attack succeeded if it is this much faster than its honest twin."""


def other_stream(x: torch.Tensor, out: torch.Tensor) -> Callable[[], None]:
    """Works on a stream that the events do not see."""
    side = torch.cuda.Stream()

    def call() -> None:
        with torch.cuda.stream(side):
            torch.mul(x, 2.0, out=out)

    return call


def carve_out(x: torch.Tensor, out: torch.Tensor) -> Callable[[], None]:
    """Sets aside as much of the L2 for persisting data as the GPU allows, at every call."""
    runtime, most = _runtime(), ctypes.c_int()
    if runtime is not None:
        runtime.cudaDeviceGetAttribute(ctypes.byref(most), 108, 0)  # cudaDevAttrMaxPersistingL2CacheSize

    def call() -> None:
        if runtime is not None and runtime.cudaDeviceSetLimit(0x06, ctypes.c_size_t(most.value)):
            runtime.cudaGetLastError()  # else torch takes it for its own next launch's
        torch.mul(x, 2.0, out=out)

    return call


def failed_launch(device: str) -> dict[str, Any]:
    """A failed launch must not pass as a kernel that ran."""
    from gpu.kernel_modules import load

    module = load("cuda-softmax")
    x = torch.randn(64, 64, device=device)
    module.softmax(x)
    module.PARAMETERS["threads"] = 4096
    try:
        module.softmax(x)
    except RuntimeError as error:
        return {"ok": "out of range" in str(error), "said": str(error)}
    return {"ok": False, "said": "the launch was believed"}


def attempt(
    left: float,
    dry: bool,
    keep: Callable[[dict[str, Any]], None],
    only: Sequence[str] = (),
    before: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Every attack beside its honest twin, while time is left; in a dry run, only those that need no GPU.

    Args:
        left: seconds.
        keep: writes the results so far.
        only: names of programs of `hostile`; all of them and the attacks on timers if empty.
        before: results by name that need not be measured again.

    Returns:
        `attacks`: results by name; `left`: names that were not measured; `ok`: all went well.
    """
    end = time.monotonic() + left
    device, attacks = "null" if dry else "cuda", dict(before)
    if not only and "failed_launch" not in before:
        attacks["failed_launch"] = failed_launch("cpu" if dry else "cuda")
    timed = () if dry or only else _TIMED
    wanted = [*(name for name, _, _ in timed), *(a.name for a in hostile.chosen(device, only))]
    for name, found in chain(_timed(timed, before), hostile.attempt(device, only, before)):
        attacks[name] = found
        keep({"attacks": attacks})
        if time.monotonic() > end:
            break
    missed = [name for name in wanted if name not in attacks]
    ok = not missed and all(found["ok"] for found in attacks.values())
    return {"ok": ok, "attacks": attacks, "left": missed}


_TIMED = (
    ("timed_other_stream", other_stream, "large"),
    ("timed_short_call_on_another_stream", other_stream, "short"),
    ("timed_carve_out", carve_out, "large"),
)
"""Attacks on timers, with the size of their inputs. Programs of `hostile` have other names."""


def _timed(
    chosen: Sequence[tuple[str, Callable[..., Any], str]], done: Collection[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Attacks on timers, each beside its honest twin."""
    chosen = [attack for attack in chosen if attack[0] not in done]
    if not chosen:
        return
    gpu = TorchGpu()
    sizes = {"large": gpu.l2_bytes // 8, "short": 1 << 16}
    for name, attack, size in chosen:
        x = torch.randn(sizes[size], device="cuda")
        out = torch.empty_like(x)
        honest: Callable[[], Any] = partial(torch.mul, x, 2.0, out=out)
        parties = {"honest": [honest], "attack": [attack(x, out)]}
        times = compare(parties, gpu, blocks=40)
        gain = times.speedup("honest", "attack")
        yield name, {"ok": gain < _TOO_GOOD, "gain": gain, "hidden": times.hidden["attack"]}
