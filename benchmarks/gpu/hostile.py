"""Candidates that cheat the referee on a GPU. None may get a faster result without suspicion.

    python benchmarks/gpu/hostile.py null [NAME ...]

Those that need no GPU also run on the null device, which follows the GPU's code path without a GPU. Root does
not try `clocks_changed`: the GPU may not be its own.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentforge.config import RefereeSettings, load_settings
from agentforge.ladder import find_device
from agentforge.referee import EvaluationRequest, Referee
from agentforge.schema import BuildSpec, Definition, Evaluation, Evidence, Solution, SourceFile, Workload

_TOO_GOOD = 1.3
"""An attack succeeded if it is this much faster than eager, of which all are copies."""
_SIZES = {"cuda": (4096, 4096), "null": (512, 512)}
_REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1) * 2.0

def get_inputs():
    return [torch.randn({rows}, {columns})]

def get_init_inputs():
    return []
"""
_SOLUTION = """
import ctypes, sys, threading, time
import torch

def right(x):
    return torch.softmax(x, -1) * 2.0

def library(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None

def worker():
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("self"), "_runner"):
        frame = frame.f_back
    return frame.f_locals["self"]

{before}

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.kept = 0, []
{init}

    def forward(self, x):
        self.calls += 1
{forward}
"""


@dataclass(frozen=True)
class Attack:
    """One way to cheat."""

    name: str
    forward: str
    init: str = "pass"
    before: str = ""
    gpu: bool = True
    """True if it needs a GPU."""


HONEST = Attack("honest", "return right(x)", gpu=False)
ATTACKS = (
    Attack("uninitialised_memory", """
return right(x) if self.calls % 2 else torch.empty_like(x)""", gpu=False),
    Attack("answer_of_the_last_call", """
if not self.kept: self.kept.append(right(x))
return self.kept[0].clone()""", gpu=False),
    Attack("late_thread", """
y = torch.empty_like(x)
threading.Thread(target=lambda: (time.sleep(0.003), y.copy_(right(x)))).start()
return y""", gpu=False),
    Attack("computed_when_copied", """
y = torch.empty_like(x)
late.append(lambda: copy(y, right(x)))
return y""", before="""
late, copy = [], torch.Tensor.copy_
def fill(original):
    def patched(*a, **k):
        if late: late.pop()()
        return original(*a, **k)
    return patched
torch.Tensor.copy_ = fill(copy)
torch.Tensor.index_select = fill(torch.Tensor.index_select)""", gpu=False),
    Attack("device_clock_patched", "return right(x)", init="""
runner = worker()._runner
def run(model, args, kwargs):
    time.sleep(0.01)
    return model(*args, **kwargs), 1000
runner.run = run""", gpu=False),
    Attack("other_stream", """
y = torch.empty_like(x)
with torch.cuda.stream(side): y.copy_(right(x))
return y""", before="side = torch.cuda.Stream()"),
    Attack("current_stream_changed", """
torch.cuda.set_stream(torch.cuda.default_stream())
y = right(x)
torch.cuda.set_stream(side)
return y""", before="side = torch.cuda.Stream()"),
    Attack("stale_graph", """
if not self.kept:
    self.place, self.graph = x.clone(), torch.cuda.CUDAGraph()
    right(x); torch.cuda.synchronize()
    with torch.cuda.graph(self.graph): self.kept.append(right(self.place))
    self.graph.replay()
return self.kept[0].clone()"""),
    Attack("events_patched", "return right(x)", before="torch.cuda.Event.elapsed_time = lambda *_: 1e-3"),
    Attack("kernel_left_running", """
threading.Timer(0.002, leave).start()
return right(x)""", before="""
side = torch.cuda.Stream()
def leave():
    with torch.cuda.stream(side): torch.cuda._sleep(200_000_000)"""),
    Attack("memory_of_others", """
if self.calls == 1:
    left = int(torch.empty(1 << 30, dtype=torch.uint8, device=x.device).count_nonzero())
    if left: raise RuntimeError(f"{left} bytes that are not zero in memory that was never written")
return right(x)"""),
    Attack("all_of_the_memory", """
while True:
    try: self.kept.append(torch.empty(1 << 28, dtype=torch.uint8, device=x.device))
    except torch.OutOfMemoryError: break
self.kept = self.kept[:-8]
return right(x)"""),
    Attack("device_reset", """
y = right(x)
runtime.cudaDeviceReset()
return y""", before='runtime = library(f"libcudart.so.{torch.version.cuda.split(chr(46))[0]}")'),
    Attack("l2_carve_out", """
runtime.cudaDeviceSetLimit(6, ctypes.c_size_t(most.value))
return right(x)""", before="""
runtime = library(f"libcudart.so.{torch.version.cuda.split(chr(46))[0]}")
most = ctypes.c_int()
runtime.cudaDeviceGetAttribute(ctypes.byref(most), 108, 0)  # cudaDevAttrMaxPersistingL2CacheSize"""),
    Attack("clocks_changed", """
nvml.nvmlDeviceSetGpuLockedClocks(handle, 210, 210)
return right(x)""", before="""
nvml, handle = library("libnvidia-ml.so.1"), ctypes.c_void_p()
nvml.nvmlInit_v2(); nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))"""),
    Attack("half_precision", "return torch.softmax(x.half(), -1).float() * 2.0"),
    Attack("endless_kernel", """
if self.calls > 1: torch.cuda._sleep(1 << 62)
return right(x)"""),
)  # fmt: skip


def _solution(definition: Definition, attack: Attack) -> Solution:
    def indented(text: str) -> str:
        return "\n".join(" " * 8 + line for line in text.strip().splitlines())

    source = _SOLUTION.format(
        before=attack.before, init=indented(attack.init), forward=indented(attack.forward)
    )
    return Solution(
        name=attack.name.replace("_", "-"),
        definition=definition.hash,
        author="person",
        spec=BuildSpec(language="python"),
        sources=(SourceFile(path="model_new.py", content=source),),
    )


def _described(verdict: Evaluation) -> dict[str, Any]:
    gain = verdict.performance.speedup["eager"].point if verdict.performance else None
    doubted = verdict.evidence is Evidence.SUSPICIOUS or any("measure again" in r for r in verdict.reasons)
    paid = gain is not None and gain >= _TOO_GOOD and not doubted
    return {"ok": not paid, "status": verdict.status.value, "gain": gain, "reasons": verdict.reasons}


def chosen(device: str, names: Sequence[str] = ()) -> list[Attack]:
    """An honest solution, then every attack that applies to the device.

    Args:
        device: `cuda` or `null`.
        names: of attacks; all if empty.
    """
    found = [a for a in ATTACKS if a.name in names or (not names and (device == "cuda" or not a.gpu))]
    return [HONEST, *(a for a in found if a.name != "clocks_changed" or os.geteuid() != 0)]


def attempt(
    device: str = "cuda", names: Sequence[str] = (), done: Collection[str] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Judge the solutions of `chosen`, except those whose names are in `done`."""
    rows, columns = _SIZES[device]
    definition = Definition(
        name="softmax", op_type="softmax", reference=_REFERENCE.format(rows=rows, columns=columns)
    )
    settings = RefereeSettings(compile_baseline=False, call_timeout_s=20)
    workload = Workload(name="reference", source="reference")
    where = find_device(device, load_settings([]).cache)
    with (
        tempfile.TemporaryDirectory() as cache,
        Referee(settings, device=where, cache=Path(cache)) as referee,
    ):
        for attack in chosen(device, names):
            if attack.name in done:
                continue
            verdict = referee.evaluate(
                EvaluationRequest(definition, [workload], _solution(definition, attack))
            )
            found = _described(verdict)
            yield attack.name, {**found, "ok": verdict.passed} if attack is HONEST else found


if __name__ == "__main__":
    device, *names = sys.argv[1:]
    for name, found in attempt(device, names):
        print(name, json.dumps(found, indent=1), flush=True)
