"""Timing on a GPU, as far as a simulated one can tell."""

from __future__ import annotations

import ctypes
import fcntl
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agentforge.referee.timing.device_lock import gpu_lock
from agentforge.referee.timing.gpu import device
from agentforge.referee.timing.gpu.device import CallTime
from agentforge.referee.timing.gpu.events import credible, empty_call
from agentforge.referee.timing.gpu.telemetry import Reading, Telemetry, reasons


@pytest.mark.parametrize(
    ("events", "clock", "seconds", "hidden"),
    [(1e-3, 1.02e-3, 1e-3, False), (1e-5, 6e-5, 1e-5, False), (0.0, 5e-3, 4.98e-3, True)],
)
def test_which_clock_is_believed(events: float, clock: float, seconds: float, hidden: bool) -> None:
    believed, beside = credible(CallTime(events, clock), CallTime(0.0, 20e-6))
    assert believed == pytest.approx(seconds) and beside == hidden


def test_a_short_call_cannot_be_hidden_on_another_stream() -> None:
    empty = CallTime(0.0, 20e-6, 3e-6)
    believed, hidden = credible(CallTime(5e-6, 110e-6, 83e-6), empty)
    assert believed == pytest.approx(85e-6) and hidden
    believed, hidden = credible(CallTime(5e-6, 30e-6, 4e-6), empty)
    assert believed == pytest.approx(6e-6) and not hidden


def test_what_an_empty_call_takes() -> None:
    found = iter([CallTime(2e-6, 30e-6 + n * 1e-6, n * 1e-6) for n in range(9)])

    class Idle(device.HostClock):
        def time(self, call: Callable[[], Any]) -> CallTime:
            return next(found)

    empty = empty_call(Idle())
    assert (empty.clock_s, empty.rest_s) == (pytest.approx(28e-6), pytest.approx(4e-6))


class Torch:
    """As much of torch as a `TorchGpu` takes, with the CPU for a GPU. A call's work is done when all wait."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.broken = self.captures = False
        log = self.did

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                log.append("event")

            record = synchronize = lambda self: log.append("record")
            elapsed_time = lambda self, end: 2.0  # noqa: E731

        def synchronize() -> None:
            if self.broken or self.captures:
                raise RuntimeError("an illegal memory access was encountered")
            log.append("idle")

        properties = SimpleNamespace(uuid="GPU-1", L2_cache_size=1024)
        self.cuda = SimpleNamespace(
            Event=Event,
            get_device_properties=lambda index: properties,
            is_current_stream_capturing=lambda: self.captures,
        )
        self._C = SimpleNamespace(_cuda_synchronize=synchronize, _cuda_emptyCache=lambda: None)
        self.device = lambda kind, index: torch.device("cpu")
        self.Tensor, self.version, self.uint8 = torch.Tensor, torch.version, torch.uint8
        self.empty, self.zeros = torch.empty, torch.zeros


@pytest.fixture
def gpu_torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    pretended = Torch()
    monkeypatch.setattr(device, "torch", pretended)
    monkeypatch.setattr(device, "_runtime", lambda: None)
    return pretended


def test_without_events_the_host_times_from_one_idle_device_to_the_next(gpu_torch: Torch) -> None:
    gpu = device.TorchGpu(events=False)
    moments = iter([1.0, 1.25])
    gpu._clock = lambda: next(moments)
    assert gpu.time(lambda: gpu_torch.did.append("call")) == CallTime(0.25, 0.25)
    assert gpu_torch.did == ["idle", "call", "idle"]  # no event was made or recorded
    timed = device.TorchGpu().time(lambda: gpu_torch.did.append("call"))
    assert timed.events_s == pytest.approx(2e-3)
    assert gpu_torch.did[3:] == ["event", "event", "record", "call", "record", "record", "idle"]


@pytest.mark.parametrize("events", [True, False])
def test_a_launch_that_failed_and_was_not_checked_is_an_error(gpu_torch: Torch, events: bool) -> None:
    gpu = device.TorchGpu(events=events)
    left = 0

    def last_error() -> int:
        nonlocal left
        code, left = left, 0
        return code

    def launch(code: int) -> None:
        nonlocal left
        left = code

    def described(code: int) -> bytes:
        return b"invalid argument" if code == 1 else b"another error"

    runtime: Any = SimpleNamespace(cudaGetLastError=last_error, cudaGetErrorString=described)
    gpu._runtime = runtime
    with pytest.raises(RuntimeError, match="a launch of the call failed: invalid argument"):
        gpu.time(lambda: launch(1))
    gpu.time(lambda: launch(0))
    gpu.time(lambda: launch(600))  # an event that was asked for is not ready yet
    gpu._runtime = None
    gpu.time(lambda: launch(1))


def test_an_open_capture_does_not_end_the_use_of_a_gpu(gpu_torch: Torch) -> None:
    gpu = device.TorchGpu()
    assert gpu.usable()
    gpu_torch.captures = True
    assert gpu.usable()
    gpu_torch.captures, gpu_torch.broken = False, True
    assert not gpu.usable()


class Nvml:
    """Answers like NVML; power is not supported."""

    def nvmlInit_v2(self) -> int:  # noqa: N802 - NVML's name
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:  # noqa: N802
        return 0 if index == 0 else 2

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: int, value: Any) -> int:  # noqa: N802
        ctypes.cast(value, ctypes.POINTER(ctypes.c_uint))[0] = {1: 1980, 2: 2619}[kind]
        return 0

    def nvmlDeviceGetTemperature(self, handle: Any, kind: int, value: Any) -> int:  # noqa: N802
        ctypes.cast(value, ctypes.POINTER(ctypes.c_uint))[0] = 61
        return 0

    def nvmlDeviceGetPowerUsage(self, handle: Any, value: Any) -> int:  # noqa: N802
        return 3

    def nvmlDeviceGetMemoryInfo(self, handle: Any, value: Any) -> int:  # noqa: N802
        answer = ctypes.cast(value, ctypes.POINTER(ctypes.c_ulonglong))
        answer[0], answer[1], answer[2] = 80 << 30, 3 << 29, 157 << 29
        return 0

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any, value: Any) -> int:  # noqa: N802
        ctypes.cast(value, ctypes.POINTER(ctypes.c_ulonglong))[0] = 0x4 | 0x1
        return 0


def test_telemetry() -> None:
    found = Telemetry(0, Nvml()).read()
    assert (found.sm_mhz, found.memory_mhz, found.celsius, found.watts) == (1980, 2619, 61, None)
    assert found.throttled == ("idle", "power cap")
    assert Telemetry(0, Nvml()).memory() == (3 << 29, 80 << 30)
    assert Telemetry(5, Nvml()).read() == Reading()
    assert Telemetry(5, Nvml()).memory() is None
    assert reasons(0x1) == ("idle",)


def is_free(lock: Path) -> bool:
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_a_gpu_is_held_by_one_timing_at_a_time(tmp_path: Path) -> None:
    with gpu_lock(tmp_path, "GPU-1/2", "timing"), gpu_lock(tmp_path, "GPU-1/2", "ncu"):
        first, second = sorted(tmp_path.iterdir())
        assert (first.name, second.name) == ("gpu-GPU-1_2.ncu.lock", "gpu-GPU-1_2.timing.lock")
        assert not is_free(first) and not is_free(second)
        with gpu_lock(tmp_path, "GPU-3", "timing"):
            assert len(list(tmp_path.iterdir())) == 3
    assert is_free(first) and is_free(second)


def test_a_graph_is_captured_for_each_form_of_inputs_and_each_number(monkeypatch: pytest.MonkeyPatch) -> None:
    captured: list[object] = []

    def recorded(call: Callable[[], object]) -> Callable[[], None]:
        captured.append(call())

        def replay() -> None:
            call()

        return replay

    monkeypatch.setattr(device, "graphed", recorded)
    model = device.GraphedModel(lambda pair, *, times: (pair[0] + pair[1]) * times)
    x, y = torch.ones(4), torch.arange(4.0)
    for times in (2, 3):
        for values in (x, y):
            found = model([values, y], times=times)
            assert torch.equal(found, (values + y) * times)
    assert len(captured) == 2


def test_a_graph_keeps_no_outputs_of_the_calls_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[torch.Tensor]] = []

    def doubled(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        made.append(weakref.ref(y))
        return y

    def recorded(call: Callable[[], object]) -> Callable[[], None]:
        for _ in range(4):
            call()
        return lambda: None

    monkeypatch.setattr(device, "graphed", recorded)
    model = device.GraphedModel(doubled)
    found = model(torch.ones(4))
    assert [each() is None for each in made] == [True, True, True, False]
    assert made[-1]() is found


def test_few_graphs_are_kept_and_each_device_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    captured: list[object] = []

    def recorded(call: Callable[[], object]) -> Callable[[], None]:
        captured.append(call())
        return lambda: None

    monkeypatch.setattr(device, "graphed", recorded)
    model = device.GraphedModel(lambda x: x + 1)
    model(torch.ones(3))
    model(torch.ones(3, device="meta"))
    assert len(captured) == 2
    for size in range(20, 40):
        model(torch.ones(size))
    assert len(model._graphs) == 8
    model(torch.ones(39))
    assert len(captured) == 22
    model(torch.ones(3))
    assert len(captured) == 23
