"""Rooflines: kept, raised, and (slowly) measured."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from agentforge.devices import (
    DeviceSpec,
    Roofline,
    _rates,
    cached_roofline,
    detect,
    measure_roofline,
    roofline,
)
from agentforge.devices.roofline import working_sets
from agentforge.schema import MachineError

FAST = Roofline(bandwidth=5e10, peak_flops={"float32": 3e11}, cache_bandwidth=3e11, call_overhead_s=1e-6)
SLOW = Roofline(bandwidth=6e10, peak_flops={"float32": 2e9}, cache_bandwidth=1e11, call_overhead_s=2e-6)


@pytest.fixture
def device() -> DeviceSpec:
    return detect("null").model_copy(update={"kind": "cpu", "name": "a CPU of the tests"})


class _Machine:
    """Gives rooflines in turn, with what others used meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: tuple[Roofline, float]) -> None:
        self.answers, self.calls = answers, 0
        monkeypatch.setattr(roofline, "_measure", self._measure)
        monkeypatch.setattr(roofline.LoadMeter, "others", lambda _: self.answers[self.calls - 1][1])

    def _measure(self, _device: DeviceSpec) -> Roofline:
        self.calls += 1
        return self.answers[self.calls - 1][0]


def test_measured_until_two_agree(
    device: DeviceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _Machine(monkeypatch, (FAST, 0.0), (FAST, 0.0))
    assert cached_roofline(device, tmp_path) is None
    for _ in range(4):
        assert measure_roofline(device, tmp_path) == FAST
    assert cached_roofline(device, tmp_path) == FAST
    assert machine.calls == 2


def test_a_slow_host_is_noticed(device: DeviceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = FAST.model_copy(update={"peak_flops": {"float32": 1.5e11}})
    machine = _Machine(monkeypatch, (half, 0.0), (FAST, 0.0), (half, 0.0), (FAST, 0.0), (FAST, 0.0))
    assert measure_roofline(device, tmp_path) == half
    for _ in range(5):
        assert measure_roofline(device, tmp_path) == FAST
    assert machine.calls == 4


def test_a_doubted_ceiling_is_measured_again(
    device: DeviceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = FAST.model_copy(update={"bandwidth": 9e10})
    _Machine(monkeypatch, (FAST, 0.0), (FAST, 0.0), (faster, 0.0), (FAST, 0.0))
    measure_roofline(device, tmp_path)
    assert measure_roofline(device, tmp_path) == FAST
    assert measure_roofline(device, tmp_path, doubted=True) == faster
    assert measure_roofline(device, tmp_path, doubted=True) == faster


def test_a_busy_machine_is_measured_again_and_only_rises(
    device: DeviceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _Machine(monkeypatch, (SLOW, 0.8), (FAST, 0.5), (FAST, 0.02), (SLOW, 0.0))
    assert measure_roofline(device, tmp_path) == SLOW
    highest = measure_roofline(device, tmp_path)
    assert measure_roofline(device, tmp_path) == highest
    assert highest.bandwidth == 6e10
    assert highest.peak_flops == {"float32": 3e11}
    assert highest.call_overhead_s == 1e-6
    assert measure_roofline(device, tmp_path) == highest
    assert machine.calls == 4


def test_an_always_busy_machine_is_given_up(
    device: DeviceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _Machine(monkeypatch, *[(SLOW, 0.9)] * 9)
    for _ in range(9):
        measure_roofline(device, tmp_path)
    assert machine.calls == roofline.TRIES


def test_another_toolchain_is_another_device(
    device: DeviceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Machine(monkeypatch, (FAST, 0.0))
    measure_roofline(device, tmp_path)
    assert cached_roofline(device.model_copy(update={"toolchain": {"g++": "14"}}), tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"roofline": 1}'])
def test_half_a_file_is_measured_again(
    device: DeviceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    machine = _Machine(monkeypatch, (SLOW, 0.0), (FAST, 0.0))
    measure_roofline(device, tmp_path)
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(content)
    assert measure_roofline(device, tmp_path) == FAST
    assert machine.calls == 2


def test_a_folder_that_cannot_be_made(
    device: DeviceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _Machine(monkeypatch, (FAST, 0.0))
    (tmp_path / "file").touch()
    assert measure_roofline(device, tmp_path / "file") == FAST
    assert "the ceilings cannot be kept" in caplog.text


@pytest.mark.slow
def test_a_child_that_fails(device: DeviceSpec, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="could not be measured"):
        measure_roofline(device.model_copy(update={"kind": "abacus", "torch_type": "abacus"}), tmp_path)


def test_the_folder_of_a_killed_process_names_its_owner(
    device: DeviceSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = []

    def compiler(argv: list[str], **_: object) -> str:
        folders.append(Path(argv[0]).parent.name)
        return "{}"

    monkeypatch.setattr(roofline, "run", compiler)
    roofline._compiled("stream.cpp", [1], device)
    assert folders[-1].startswith(f"agentforge-ceilings-{os.getpid()}-")  # as `remove_leftovers` reads it


def test_the_null_device_needs_no_measurement(tmp_path: Path) -> None:
    assert measure_roofline(detect("null"), tmp_path).bandwidth == 1e11
    assert not list(tmp_path.iterdir())


def test_working_sets() -> None:
    device = detect("null")
    beyond, *inside = working_sets(device)
    assert beyond >= 8 * device.cache_bytes[-1]
    assert all(4 * 1.5 * (1 << 20) < size < device.cache_bytes[-1] for size in inside)
    small = device.model_copy(update={"memory_bytes": 256 << 20})
    assert working_sets(small)[0] == 32 << 20
    assert len(working_sets(device.model_copy(update={"cache_bytes": ()}))) > 1


def test_bandwidth_is_measured_beyond_many_caches(
    device: DeviceSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve dies with 32 MiB each: an array that is read again and again must not fit into them."""
    epyc = device.model_copy(update={"cache_bytes": (32 << 10, 1 << 20, 384 << 20), "memory_bytes": 1 << 38})
    streamed = []

    def python(argv: list[str], **_: object) -> str:
        streamed.append(int(argv[-1]) // 3)
        return json.dumps(FAST.model_dump())

    def compiled(source: str, arguments: list[float], _: DeviceSpec) -> object:
        if source == "stream.cpp":
            streamed.append(int(arguments[1]) // 2)
        return {}

    monkeypatch.setattr(roofline, "run_python", python)
    monkeypatch.setattr(roofline, "_compiled", compiled)
    roofline._measure(epyc)
    assert len(streamed) == 2
    assert min(streamed) >= 2 * epyc.cache_bytes[-1]


def test_tensor_cores_compute_products_as_exact_as_float32(
    device: DeviceSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three products in TF32 replace one. An H100 answered with rates like these."""
    measured = {"float32": 51.6e12, "float64": 55e12, "float16": 7e14, "bfloat16": 7e14, "tf32": 3.9e14}

    def rates(peaks: dict[str, float]) -> dict[str, float]:
        answer = FAST.model_dump() | {"peak_flops": peaks}
        monkeypatch.setattr(roofline, "run_python", lambda *_, **__: json.dumps(answer))
        return roofline._measure(device.model_copy(update={"kind": "cuda", "torch_type": "cuda"})).peak_flops

    found = rates(measured)
    assert found == measured | {"float32": 1.3e14}
    older = {name: rate for name, rate in measured.items() if name != "tf32"}
    assert rates(older | {"tf32": 51.6e12}) == older | {"tf32": 51.6e12}, "without tensor cores for TF32"


@pytest.mark.slow
@pytest.mark.timing
def test_this_cpu(tmp_path: Path) -> None:
    device = detect("cpu")
    found = measure_roofline(device, tmp_path)
    assert 1e9 < found.bandwidth < 2e12
    assert found.cache_bandwidth >= found.bandwidth
    assert found.peak_flops["float32"] > 1e9
    assert found.peak_flops["bfloat16"] >= found.peak_flops["float32"]
    assert 1e-8 < found.call_overhead_s < 1e-3
    (file,) = tmp_path.rglob("*.json")
    assert json.loads(file.read_text())["tries"] == 1


def test_a_cache_is_passed_over_many_times_before_each_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU a wait takes as long as a pass."""

    def time_of(call: Callable[[], object], wait: Callable[[], None], _: float) -> float:
        calls.clear()
        call()
        wait()
        return 1.0

    calls: list[str] = []
    plain = torch.sum
    monkeypatch.setattr(_rates, "best_time", time_of)
    monkeypatch.setattr(torch, "sum", lambda x: (calls.append("pass"), plain(x))[1])
    assert _rates.bandwidth("cpu", 12 << 10, lambda: calls.append("wait"), 1.0, passes=5) == 5 * 12 * 1024
    assert calls == ["pass"] * 5 + ["wait"]
