"""The referee's way of a GPU, on a device that is none: inputs are copied, outputs asked for, two clocks."""

from __future__ import annotations

import ctypes
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec, detect
from agentforge.referee import Referee
from agentforge.referee.checks.behaviour import interference
from agentforge.referee.checks.correctness.layouts import Layouts
from agentforge.referee.comparison.output_sampling import OutputSampling, Sample, SamplePlan
from agentforge.referee.timing import timer as timing
from agentforge.referee.timing.gpu.device import CallTime, HostClock
from agentforge.referee.timing.gpu.telemetry import Reading, Telemetry, first_gpu, visible_gpu
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.device_backend import backend_for, gpu_files
from agentforge.referee.workers.environment import worker_environment
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.referee.workers.runner import DeviceRunner, HostRunner, runner_for
from agentforge.schema import EvaluationStatus, Evidence, MachineError

from ..judging import WORKLOAD, examined, judge, problem

DEFINITION = problem(
    "return torch.relu(self.linear(x)) + x1", "torch.randn(40, 24), torch.randn(40, 24)",
    "self.linear = torch.nn.Linear(24, 24)",
)  # fmt: skip


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    settings = RefereeSettings(
        threads=1, compile_baseline=False, quick_blocks=4, quick_seconds=0.2, random_seeds=2, task_seconds=1,
        call_timeout_s=6,
    )  # fmt: skip
    with Referee(settings, device=detect("null"), cache=tmp_path_factory.mktemp("cache")) as found:
        yield found


def test_an_honest_solution_passes_and_is_timed(referee: Referee) -> None:
    verdict = judge(referee, DEFINITION)
    assert verdict.status is EvaluationStatus.PASSED, verdict.reasons
    assert verdict.evidence is Evidence.UNVERIFIED  # level quick
    assert verdict.performance is not None
    assert verdict.performance.latency_s > 0
    assert verdict.environment.notes["weights"] == "seed"


_FORWARD = "return torch.relu(self.linear(x)) + x1"
FAULTS = {
    "wrong": ("torch.relu", "torch.sigmoid", EvaluationStatus.INCORRECT_NUMERICAL),
    "raises": (_FORWARD, "raise ValueError('no')", EvaluationStatus.RUNTIME_ERROR),
    "writes to its inputs": (
        _FORWARD, "y = torch.relu(self.linear(x)) + x1; x.zero_(); return y", EvaluationStatus.CHEATING,
    ),
    "gives an input back": (
        _FORWARD, "x1 += torch.relu(self.linear(x)); return x1", EvaluationStatus.CHEATING,
    ),
    "one static buffer": (
        _FORWARD,
        "self.kept = getattr(self, 'kept', torch.empty(40, 24))\n"
        "        return torch.add(torch.relu(self.linear(x)), x1, out=self.kept)",
        EvaluationStatus.CHEATING,
    ),
    "ends its process": (_FORWARD, "import os; os._exit(3)", EvaluationStatus.CRASHED),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults(referee: Referee, name: str) -> None:
    old, new, status = FAULTS[name]
    verdict = judge(referee, DEFINITION, (old, new))
    assert verdict.status is status, verdict.reasons


_LOST = f"""if x.shape[0] != 40:
    import sys
    sys.modules["agentforge.referee.timing.gpu.device"].HostClock.usable = lambda self: False
    raise RuntimeError("CUDA error: device-side assert triggered")
{_FORWARD}"""
"""A forward that fails as a place does that a GPU cannot look up."""


def test_a_candidate_that_loses_the_device_refuses_nothing(referee: Referee) -> None:
    with examined(referee, DEFINITION, (_FORWARD, _LOST.replace("\n", "\n        "))) as context:
        with pytest.raises(WorkerFailure, match=r"cannot use the device any more: .*device-side") as told:
            Layouts().run(context)
        assert told.value.status is EvaluationStatus.CRASHED
        assert not told.value.worker
        assert not context.candidate.worker.running


def test_a_reference_that_loses_the_device_is_asked_no_more(referee: Referee) -> None:
    inputs, init = "torch.randn(40, 24), torch.randn(40, 24)", "self.linear = torch.nn.Linear(24, 24)"
    with examined(referee, problem(_LOST, inputs, init)) as context:
        with pytest.raises(WorkerFailure, match=r"cannot use the device any more: .*device-side") as told:
            Layouts().run(context)
        assert told.value.worker == "eager"
        assert not context.baselines.eager.worker.running


def test_inputs_of_a_device_begin_anywhere_too(referee: Referee) -> None:
    change = f"x = x * (x.data_ptr() % 16 == 0)\n        {_FORWARD}"
    with (
        examined(referee, DEFINITION, (_FORWARD, change)) as context,
        pytest.raises(WorkerFailure, match="as slices do") as told,
    ):
        Layouts().run(context)
    assert told.value.status is EvaluationStatus.INCORRECT_NUMERICAL


@pytest.mark.slow
def test_a_hang_is_killed_and_the_next_verdict_is_right(referee: Referee) -> None:
    again = "import time; self.calls = getattr(self, 'calls', 0) + 1"
    hanging = (_FORWARD, f"{again}\n        while self.calls > 1: time.sleep(1)\n        {_FORWARD}")
    assert judge(referee, DEFINITION, hanging).status is EvaluationStatus.TIMEOUT
    assert judge(referee, DEFINITION).status is EvaluationStatus.PASSED


LAZY = """
late, copy, cat = [], torch.Tensor.copy_, torch.Tensor.index_select

def fill():
    if late:
        late.pop()()

def filled(original):
    def patched(*args, **kwargs):
        fill()
        return original(*args, **kwargs)
    return patched
"""
LAZILY = (
    "y = torch.empty_like(x)\n"
    "        late.append(lambda: (time.sleep(0.004), copy(y, torch.relu(self.linear(x)) + x1)))\n"
    "        return y"
)
HOOKS = {
    "when it is looked at": "torch.Tensor.copy_ = filled(copy)\ntorch.Tensor.index_select = filled(cat)",
    "when it is copied": "torch.Tensor.copy_ = filled(copy)",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_work_put_off_until_the_answer_is_copied_is_found(referee: Referee, hook: str) -> None:
    lazy = ("import torch\n", f"import time\nimport torch\n{LAZY}{HOOKS[hook]}\n")
    verdict = judge(referee, DEFINITION, (_FORWARD, LAZILY), lazy)
    doubted = (
        "something disturbs it" in verdict.reasons[0]
    )  # beside other work the reference's reads are late too
    assert verdict.status is not EvaluationStatus.PASSED or doubted, verdict.reasons
    # Which of the rules speaks first depends on how the machine disturbs the reads.
    rules = ("work is hidden", "work is deferred", "when a timed call was answered")
    assert any(words in verdict.reasons[0] for words in rules), verdict.reasons


def test_an_honest_solution_whose_reads_are_disturbed_is_not_accused(
    referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, clock, calls = OutputSampling.read, [0.0], Counter[str]()

    def slow(self: OutputSampling, client: WorkerClient, slot: int, look: SamplePlan) -> Sample:
        turn = calls[client.name] // timing.turn_shape(0.0, 0).calls
        calls[client.name] += 1
        clock[0] += 0.01 if client.name == "candidate" and turn % 3 else 1e-4  # two of three turns
        return read(self, client, slot, look)

    monkeypatch.setattr(OutputSampling, "read", slow)
    monkeypatch.setattr(timing, "_reading_clock", lambda: clock[0])
    verdict = judge(referee, DEFINITION)
    assert verdict.status is EvaluationStatus.PASSED, verdict.reasons
    assert any("or something disturbs it" in reason for reason in verdict.reasons)
    assert verdict.evidence is Evidence.UNVERIFIED


@pytest.mark.parametrize(
    ("before", "beside", "after", "words"),
    [
        (1e-3, 1.2e-3, 1e-3, ""),
        (1e-3, 2e-3, 1.1e-3, "takes 2.000 ms beside it, 1.000 ms before and 1.100 ms after"),
        (1e-3, 2e-3, 1.9e-3, ""),  # the machine changed
        (1.9e-3, 2e-3, 1e-3, ""),
        (1e-5, 5e-5, 1e-5, ""),
    ],
)
def test_a_reference_that_is_slower_beside_a_candidate(
    before: float, beside: float, after: float, words: str
) -> None:
    times = timing.GroupTimes({"eager": [beside] * 5 + [1.0] * 2, "candidate": [1e-4] * 7})
    told = interference.slowdown([before, before], [times, times], [after, after])
    assert words in told if words else not told


def test_a_candidate_that_leaves_work_on_the_device_is_not_believed(
    referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interference, "reference_seconds", lambda baselines: [1e-9] * len(baselines.prepared))
    monkeypatch.setattr(interference, "_LEAST_S", 0.0)
    verdict = judge(referee, DEFINITION)
    assert verdict.status is EvaluationStatus.PASSED, verdict.reasons
    assert any("left work on the device" in reason for reason in verdict.reasons)
    assert [stage.name for stage in verdict.stages].count("alone") == 2


class Stubborn(HostClock):
    """Events that saw little of a call, as of one that works on another stream."""

    def __init__(self, events_s: float, clock_s: float) -> None:
        self.found = CallTime(events_s, clock_s)
        self.prepared = 0

    def prepare(self) -> None:
        self.prepared += 1

    def time(self, call: Callable[[], Any]) -> CallTime:
        call()
        return self.found


@pytest.mark.parametrize(
    ("events", "clock", "counted"), [(1e-3, 1.02e-3, 1e-3), (1e-5, 4e-3, 4e-3)], ids=["honest", "aside"]
)
def test_work_beside_the_events_counts(events: float, clock: float, counted: float) -> None:
    gpu = Stubborn(0.0, 0.0)
    runner = DeviceRunner(torch.device("cpu"), gpu)
    gpu.found = CallTime(events, clock)
    output, nanoseconds = runner.run(lambda x: x + 1, (1,), {})
    assert output == 2
    assert nanoseconds == pytest.approx(counted * 1e9)
    assert gpu.prepared == 1


def test_arguments_are_copied_with_their_strides() -> None:
    runner = DeviceRunner(torch.device("cpu"), HostClock())
    x = torch.randn(6, 4).t()
    there = runner.bring([x, {"a": (x, 3)}, "text"])
    assert there[0].stride() == x.stride()
    assert there[0].data_ptr() != x.data_ptr()
    assert torch.equal(there[1]["a"][0], x)
    assert there[1]["a"][1] == 3
    assert there[2] == "text"
    host = HostRunner()
    assert host.bring(x) is x
    assert host.run(lambda y: y, (x,), {}) == (x, 0)


def test_copies_lie_as_far_from_an_aligned_address_and_stay_lazy() -> None:
    bring = DeviceRunner(torch.device("cpu"), HostClock()).bring
    memory = torch.randn(200)
    for x in (memory[1:101].view(10, 10), memory[3:103].view(10, 10).t(), memory[7:187].view(10, 18)[:, :5]):
        there = bring(x)
        assert there.data_ptr() % 64 == x.data_ptr() % 64 != 0
        assert there.stride() == x.stride()
        assert torch.equal(there, x)
    numbers = torch.randn(9, dtype=torch.complex64)[1:]
    for lazy in (numbers.conj(), numbers.conj().imag):
        there = bring(lazy)
        assert (there.is_conj(), there.is_neg()) == (lazy.is_conj(), lazy.is_neg())
        assert there.data_ptr() % 64 == lazy.data_ptr() % 64
        assert torch.equal(there, lazy)


def test_a_device_is_its_workers(referee: Referee, tmp_path: Path) -> None:
    assert isinstance(runner_for("cpu"), HostRunner)
    assert isinstance(runner_for("null"), DeviceRunner)
    cuda = backend_for(DeviceSpec(kind="cuda", name="a GPU", architecture="sm_90"))
    assert cuda.remote
    assert cuda.kind == "cuda"
    assert cuda.compiled(RefereeSettings()) == (["compile", "max-autotune", "cuda-graph"], [])
    assert cuda.compiled(RefereeSettings(), whole_model=False) == (["compile", "cuda-graph"], [])
    named = RefereeSettings(baselines=("max-autotune",))
    assert cuda.compiled(named, whole_model=False) == (["max-autotune"], [])
    assert cuda.address_space is not None
    with pytest.raises(MachineError, match="no workers for tpu"):
        backend_for(DeviceSpec(kind="tpu", name="other", architecture="other"))
    with cuda.lock(tmp_path):
        assert [p.name for p in tmp_path.iterdir()] == ["gpu-0.timing.lock"]
    assert backend_for(detect("null")).telemetry() == ""
    assert backend_for(detect("null")).room() == ""


def test_a_clock_that_says_more_than_ours_gains_nothing(referee: Referee) -> None:
    client = referee.baselines(DEFINITION, [WORKLOAD]).eager
    assert client._by_device({"device_ns": 11}, 10) == 10
    with pytest.raises(WorkerFailure, match="its device took 0 ns"):
        client._by_device({"device_ns": 0}, 10)
    referee.release()


def test_files_that_a_driver_opens(tmp_path: Path) -> None:
    for name in ("dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-caps/nvidia-cap1"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to("/dev/null")
    (tmp_path / "dev/nvidia-notes").touch()
    for name in ("sys/module/nvidia", "sys/module/nvidia_uvm", "sys/module/ext4", "sys/devices/pci0000:00"):
        (tmp_path / name).mkdir(parents=True)
    assert [str(path.relative_to(tmp_path)) for path in gpu_files(tmp_path)] == [
        "dev/nvidia-uvm", "dev/nvidia0", "dev/nvidiactl", "dev/nvidia-caps/nvidia-cap1",
        "sys/module/nvidia", "sys/module/nvidia_uvm", "sys/devices/pci0000:00",
    ]  # fmt: skip


def test_workers_see_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    cuda = backend_for(DeviceSpec(kind="cuda", name="a GPU", architecture="sm_90"))
    environment = worker_environment(1, Path("/"), cuda.environment)
    assert environment["CUDA_VISIBLE_DEVICES"] == "2"
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert first_gpu() == {"CUDA_VISIBLE_DEVICES": "0"}


def test_workers_find_the_toolkit_that_the_user_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(name, "/opt/cuda-13")
        assert worker_environment(1, Path("/"), {})[name] == "/opt/cuda-13"


def test_workers_find_programs_of_an_environment_that_is_not_active(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    assert worker_environment(1, Path("/"), {})["PATH"] == f"/usr/bin:{sysconfig.get_path('scripts')}"


def test_which_gpu_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, expected in (("", 0), ("2,3", 2), ("GPU-abc,1", "GPU-abc"), ("none", 0)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert visible_gpu() == expected


def test_readings_in_words() -> None:
    full = Reading(sm_mhz=1980, memory_mhz=2619, celsius=61, watts=349.6, throttled=("power cap", "idle"))
    assert full.describe() == "1980 MHz, memory 2619 MHz, 61 C, 350 W, held back by power cap and idle"
    assert Reading().describe() == ""


class Identified:
    """NVML of a GPU that is found by its identifier."""

    def nvmlInit_v2(self) -> int:  # noqa: N802 - NVML's name
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Any) -> int:  # noqa: N802
        return 0 if uuid == b"GPU-abc" else 2

    def nvmlDeviceGetUUID(self, handle: Any, text: Any, size: int) -> int:  # noqa: N802
        ctypes.memmove(text, b"GPU-abc\0", 8)
        return 0


def test_a_gpu_is_known_by_its_identifier() -> None:
    assert Telemetry("GPU-abc", Identified()).uuid() == "GPU-abc"
    assert Telemetry("GPU-other", Identified()).uuid() == "GPU-other"
