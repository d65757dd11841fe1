"""The profiler against an `ncu` that is a function, and the profiled process for real on the CPU."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from agentforge.languages import CommandResult
from agentforge.languages.command import run_command
from agentforge.profiling.nsight import KernelProfiler, KernelReport, Launch, Refusal, Refused
from agentforge.profiling.nsight.target import KernelTime, Spec, Times, kernel_times, prepare
from agentforge.schema import BuildSpec, Definition, Solution, SourceFile, Workload

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
    def forward(self, x):
        return x * self.scale

def get_inputs():
    return [torch.ones(8)]

def get_init_inputs():
    return [3.0]
"""


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    folder = tmp_path / "solution"
    folder.mkdir()
    text = REFERENCE.replace("class Model", "class ModelNew")
    (folder / "model_new.py").write_text(text)
    definition = Definition(name="scale", op_type="model", reference=REFERENCE)
    solution = Solution(
        name="scale",
        definition=definition.hash,
        author="person",
        spec=BuildSpec(language="python"),
        sources=(SourceFile(path="model_new.py", content=text),),
    )
    workload = Workload(name="8", source="reference")
    return Launch(solution, folder, definition, workload, own_kernels=("scale",), latency_s=1e-3)


class Ncu:
    """Answers in the place of `ncu` and of the timed process."""

    def __init__(self, stderr: str = "", *, writes: bool = True, times: Times | None = None) -> None:
        self.stderr, self.writes, self.times = stderr, writes, times
        self.commands: list[list[str]] = []

    def __call__(
        self, argv: Sequence[str], *, cwd: Path, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        self.commands.append(list(argv))
        if "--query-metrics" in argv:
            return CommandResult(0, "sm__throughput Throughput %\n", "", 0.1)
        if argv[0] == "ncu":
            if self.writes:
                Path(argv[argv.index("--export") + 1]).write_text("a report")
            return CommandResult(1 if self.stderr else 0, "", self.stderr, 1.0)
        spec = Spec.model_validate_json(Path(argv[-1]).read_text())
        if self.times is None:
            return CommandResult(1, "", "no CUDA", 0.1)
        Path(spec.times).write_text(self.times.model_dump_json())
        return CommandResult(0, "", "", 0.1)


def _reader(path: Path) -> tuple[KernelReport, ...]:
    assert path.read_text() == "a report"
    return (
        KernelReport("scale", {"gpu__time_duration.sum": 900.0, "x": None}, {"gpu__time_duration.sum": "ns"}),
    )


def _profiler(ncu: Ncu, said: list[str]) -> KernelProfiler:
    return KernelProfiler(run=ncu, say=said.append, reader=_reader, find=lambda: "ncu")


def test_counters_are_of_the_solution_and_its_own_kernels(launch: Launch):
    ncu, said = Ncu(), []
    profiler = _profiler(ncu, said)
    seen = profiler.observe(launch)
    assert seen.solution == launch.solution.hash
    assert [(m.name, m.value, m.kernel) for m in seen.metrics] == [("gpu__time_duration.sum", 900.0, "scale")]
    assert seen.classification is not None
    assert not said
    profiled = ncu.commands[-1]
    assert "regex:^(scale)(_[0-9a-z]+)?$" in profiled
    metrics = profiled[profiled.index("--metrics") + 1].split(",")
    assert "sm__throughput.avg.pct_of_peak_sustained_elapsed" in metrics
    assert "sm__cycles_active.avg" not in metrics  # this chip does not have it
    profiler.observe(launch)
    assert sum("--query-metrics" in c for c in ncu.commands) == 1


def test_where_counters_are_refused_it_says_so_once_and_times_kernels(launch: Launch):
    times = Times(calls=10, kernels=(KernelTime(name="scale", seconds=2e-3, launches=10),))
    ncu, said = Ncu("==ERROR== ERR_NVGPUCTRPERM", writes=False, times=times), []
    profiler = _profiler(ncu, said)
    first, second = profiler.observe(launch), profiler.observe(launch)
    assert first == second
    assert {m.name: m.value for m in first.metrics} == {
        "kernel_time": pytest.approx(2e-4),
        "launches": 1.0,
        "kernel_time_share": pytest.approx(0.2),
    }
    assert first.kernel_s == pytest.approx(2e-4)
    assert len(said) == 1
    assert sum(c[0] == "ncu" and "--export" in c for c in ncu.commands) == 1  # not asked again


def test_one_failed_profile_is_no_reason_to_give_up(launch: Launch):
    ncu, said = Ncu("==ERROR== The application returned an error code (1).", writes=False), []
    profiler = _profiler(ncu, said)
    assert profiler.observe(launch).metrics == ()
    ncu.writes, ncu.stderr = True, ""
    assert profiler.observe(launch).metrics
    assert len(said) == 1


def test_without_ncu_nothing_is_started_twice(launch: Launch):
    def find() -> str:
        raise Refused(Refusal.NO_NCU, "not installed")

    ncu, said = Ncu(), []
    profiler = KernelProfiler(run=ncu, say=said.append, find=find)
    for _ in range(2):
        assert profiler.observe(launch).metrics == ()
    assert len(said) == 1


def test_the_profiled_process_for_real(launch: Launch, tmp_path: Path):
    spec = Spec(
        folder=str(launch.folder),
        entry_file="model_new.py",
        entry_class="ModelNew",
        definition=launch.definition,
        workload=launch.workload,
        device="cpu",
        warmup=1,
        calls=2,
        times=str(tmp_path / "times.json"),
    )
    path = tmp_path / "spec.json"
    path.write_text(spec.model_dump_json())
    argv = [sys.executable, "-m", "agentforge.profiling.nsight.target", str(path)]
    done = run_command(argv, cwd=tmp_path, timeout_s=120)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "times.json").read_text()) == {
        "calls": 2,
        "kernels": [],
    }  # no GPU, no kernels


def test_a_solution_is_constructed_as_its_reference(launch: Launch, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "model_new", raising=False)
    spec = Spec(
        folder=str(launch.folder),
        entry_file="model_new.py",
        entry_class="ModelNew",
        definition=launch.definition,
        workload=launch.workload,
        device="cpu",
    )
    assert torch.equal(prepare(spec)(), torch.full((8,), 3.0))
    monkeypatch.delitem(sys.modules, "model_new", raising=False)


def test_kernel_times_count_the_device_once():
    cuda, cpu = torch.autograd.DeviceType.CUDA, torch.autograd.DeviceType.CPU

    def event(name: str, kind: object, us: float, annotation: bool = False) -> SimpleNamespace:
        return SimpleNamespace(
            name=name,
            device_type=kind,
            is_user_annotation=annotation,
            time_range=SimpleNamespace(elapsed_us=lambda: us),
        )

    events = [
        event("aten::mul", cpu, 50.0),
        event("mul_kernel", cuda, 10.0),
        event("mul_kernel", cuda, 12.0),
        event("sum_kernel", cuda, 30.0),
        event("range", cuda, 60.0, annotation=True),
    ]
    assert [(k.name, round(k.seconds * 1e6), k.launches) for k in kernel_times(events)] == [
        ("sum_kernel", 30, 1),
        ("mul_kernel", 22, 2),
    ]
