"""The observer with an `ncu` that is a program; in the sandbox, and with processes that need none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agentforge.config import RefereeSettings
from agentforge.devices import detect
from agentforge.languages import CommandResult
from agentforge.languages.command import run_command
from agentforge.profiling.nsight import NsightObserver, Observation
from agentforge.referee import Referee, Subject
from agentforge.referee.profiling_bridge.main import KernelTime, Times, kernel_times
from agentforge.schema import Bound, HarnessError, KernelUse, Solution
from tests.referee.judging import WORKLOAD, problem, solution_of

from . import h100
from .installed import KERNEL, REFUSED, install

DEFINITION = problem("return torch.softmax(x, -1)", "torch.randn(40, 24)")
SOLUTION = solution_of(DEFINITION)
TIMES = Times(calls=10, kernels=(KernelTime(name="softmax", seconds=2e-3, launches=20),))


@pytest.fixture(autouse=True)
def no_other_ncu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NCU", raising=False)
    monkeypatch.setenv("PATH", os.pathsep.join(["/usr/bin", "/bin"]))
    monkeypatch.setattr("agentforge.profiling.nsight.capability._FOLDERS", ())


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put an installation on PATH."""

    def put(name: str = "nsight", **kind: Any) -> Path:
        folder = install(tmp_path / name, **kind)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return folder

    return put


class Plain:
    """A subject without a sandbox, whose process writes the times that it is given and is done."""

    def __init__(self, results: Path, times: str, failing: bool = False) -> None:
        self.results = results
        self.times = times
        self.failing = failing
        self.commands: list[list[str]] = []

    def command(self, *arguments: str) -> list[str]:
        code = "import pathlib, sys; [pathlib.Path(p).write_text(sys.argv[1]) for p in sys.argv[2:]]"
        return [sys.executable, "-c", "1/0" if self.failing else code, self.times, *arguments]

    def run(self, argv: Sequence[str], *, timeout_s: float) -> CommandResult:
        self.commands.append(list(argv))
        return run_command(argv, cwd=self.results, timeout_s=timeout_s)

    def alone(self) -> AbstractContextManager[None]:
        return nullcontext()


class Gallery:
    """Presents each solution as a plain subject, each in a folder of its own."""

    def __init__(
        self, folder: Path, times: str = "", plant: Callable[[Path], object] = lambda path: None
    ) -> None:
        self.folder = folder
        self.times = times or TIMES.model_dump_json()
        self.plant = plant
        self.failing = False
        self.shown: list[Plain] = []
        self.programs: tuple[Path, ...] = ()

    @contextmanager
    def subject(
        self, definition: Any, workloads: Any, solution: Any, *, programs: Sequence[Path] = ()
    ) -> Iterator[Subject]:
        results = self.folder / f"results-{len(self.shown)}"
        results.mkdir()
        self.plant(results / "report.json")
        self.programs = tuple(programs)
        self.shown.append(Plain(results, self.times, self.failing))
        yield self.shown[-1]


def _evaluation(solution: Solution, own: str = KERNEL) -> Any:
    return SimpleNamespace(kernels=(KernelUse(name=own, own=True, calls=1),), solution=solution.hash)


def _other(number: int) -> Solution:
    return solution_of(DEFINITION, ("-1)", f"-1) * 1.0  # {number}"))


def _observe(observer: NsightObserver, solution: Solution = SOLUTION, own: str = KERNEL) -> Observation:
    return observer.observe_evaluated(DEFINITION, [WORKLOAD], solution, _evaluation(solution, own))


def test_counters_are_of_the_solutions_own_kernels(tmp_path: Path, on_path: Callable[..., Path]) -> None:
    folder = on_path()
    gallery, said = Gallery(tmp_path), []
    observer = NsightObserver(gallery, said.append)
    seen = _observe(observer)
    assert not said
    assert seen.solution == SOLUTION.hash
    assert {m.kernel for m in seen.metrics} == {KERNEL}  # the other kernel in the recording is not its own
    values = {m.name: (m.value, m.unit, m.source) for m in seen.metrics}
    assert values["gpu__time_duration.sum"] == (52_000.0, "ns", "ncu")
    assert seen.classification is not None
    assert seen.classification.bound is Bound.MEMORY
    rule, line = (next(f for f in seen.findings if f.source == s) for s in ("ncu-rule", "ncu-line"))
    assert rule.estimated_speedup == pytest.approx(1.25)
    assert (line.file, line.line, line.share) == ("model_new.py", 7, 0.9)
    assert folder in gallery.programs
    (profiling, _) = gallery.shown[0].commands
    wanted = profiling[profiling.index("--metrics") + 1].split(",")
    assert "sm__throughput.avg.pct_of_peak_sustained_elapsed" in wanted
    assert "sm__cycles_active.avg" not in wanted  # this chip does not list it
    assert _observe(observer) is seen  # judged again at level full
    assert len(gallery.shown) == 1


def test_where_counters_are_refused_it_says_so_once_and_times_kernels(
    tmp_path: Path, on_path: Callable[..., Path]
) -> None:
    on_path(refused=REFUSED)
    gallery, said = Gallery(tmp_path), []
    observer = NsightObserver(gallery, said.append)
    first, second = _observe(observer), _observe(observer, _other(1))
    assert {m.name: m.value for m in first.metrics} == {"kernel_time": pytest.approx(2e-4), "launches": 2.0}
    assert first.kernel_s == pytest.approx(2e-4)
    assert second.metrics == first.metrics
    assert second.solution == _other(1).hash
    assert len(said) == 1
    assert "ERR_NVGPUCTRPERM" in said[0]
    assert "falling back" in said[0]
    assert [len(plain.commands) for plain in gallery.shown] == [2, 1]  # ncu is not asked again


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (None, "not installed"),
        ({"version": "2019.4.0"}, "2019.4 is too old"),
        (
            {"refused": "==ERROR== Cuda driver is not compatible with Nsight Compute"},
            "does not match the driver",
        ),
    ],
    ids=["none", "too old", "of another driver"],
)
def test_an_ncu_that_cannot_work(
    tmp_path: Path, on_path: Callable[..., Path], kind: dict[str, str] | None, reason: str
) -> None:
    if kind is not None:
        on_path(**kind)
    gallery, said = Gallery(tmp_path), []
    observer = NsightObserver(gallery, said.append)
    assert _observe(observer).kernel_s == pytest.approx(2e-4)
    assert _observe(observer, _other(1)).kernel_s == pytest.approx(2e-4)
    assert len(said) == 1
    assert reason in said[0]


@pytest.mark.slow
def test_one_failed_profile_is_no_reason_to_give_up(tmp_path: Path, on_path: Callable[..., Path]) -> None:
    folder = on_path()
    gallery, said = Gallery(tmp_path), []
    observer = NsightObserver(gallery, said.append)
    recorded = (folder / "recorded.json").read_text()
    (folder / "recorded.json").write_text("[{}]")  # matches nothing that could be read
    assert _observe(observer).classification is None
    (folder / "recorded.json").write_text(recorded)
    gallery.failing = True
    assert _observe(observer, _other(2)) == Observation(_other(2).hash)
    gallery.failing = False
    assert _observe(observer, _other(3)).classification is not None
    assert len(said) == 1


def test_kernels_of_other_names_are_looked_at_where_its_own_are_not_found(
    tmp_path: Path, on_path: Callable[..., Path]
) -> None:
    on_path()
    gallery, said = Gallery(tmp_path), []
    seen = _observe(NsightObserver(gallery, said.append), own="another")
    assert not said
    assert {m.kernel for m in seen.metrics} == {KERNEL, "vectorized_elementwise_kernel"}
    first, second, _ = gallery.shown[0].commands
    assert "--kernel-name" in first
    assert "--kernel-name" not in second


@pytest.mark.slow
def test_a_metric_that_is_listed_and_not_found(tmp_path: Path, on_path: Callable[..., Path]) -> None:
    """One name is enough for ncu to give up; its own sets are left, and asked for from then on."""
    on_path(lacks="dram__bytes_read")
    gallery, said = Gallery(tmp_path), []
    observer = NsightObserver(gallery, said.append)
    for number in range(2):
        assert _observe(observer, _other(number)).classification is not None
    assert not said
    asked = [["--metrics" in command for command in plain.commands] for plain in gallery.shown]
    assert asked == [[True, False, False], [False, False]]  # the last of each reads the report


@pytest.mark.slow
def test_a_solution_cannot_end_the_profiling_of_others(tmp_path: Path, on_path: Callable[..., Path]) -> None:
    """Its words and ncu's come on the same stream."""
    folder = on_path()
    gallery, said = Gallery(tmp_path), []
    observer = NsightObserver(gallery, said.append)
    assert _observe(observer).classification is not None
    (folder / "refused.txt").write_text(REFUSED)
    assert _observe(observer, _other(1)).kernel_s is not None
    (folder / "refused.txt").write_text("")
    assert _observe(observer, _other(2)).classification is not None
    assert len(said) == 1


@pytest.mark.parametrize("answer", ["", "{", '{"calls": 0}', '{"calls": 1, "kernels": []}'])
def test_times_that_are_none(tmp_path: Path, answer: str) -> None:
    gallery = Gallery(tmp_path, answer or "nothing")
    assert _observe(NsightObserver(gallery, lambda _: None)) == Observation(SOLUTION.hash)


@pytest.mark.slow
@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd"), Path.mkdir])
def test_what_a_candidate_left_in_the_readers_place(
    tmp_path: Path, on_path: Callable[..., Path], plant: Callable[[Path], None]
) -> None:
    """A pipe would keep who opens it waiting, and a link lead elsewhere."""
    on_path()
    gallery, said = Gallery(tmp_path, plant=plant), []
    seen = _observe(NsightObserver(gallery, said.append))
    if plant is Path.mkdir:
        assert "cannot be read" in said[0]
        assert seen.kernel_s is not None
    else:
        assert seen.classification is not None


def test_a_solution_that_cannot_be_shown(tmp_path: Path) -> None:
    class Broken(Gallery):
        def subject(self, *args: Any, **kwargs: Any) -> Any:
            raise HarnessError("it does not build any more")

    said: list[str] = []
    observer = NsightObserver(Broken(tmp_path), said.append)
    assert _observe(observer) == Observation(SOLUTION.hash)
    assert [text for text in said if "does not build any more" in text]


# -- in earnest, on a device that computes on the CPU


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Referee]:
    settings = RefereeSettings(
        threads=1, compile_baseline=False, quick_blocks=2, quick_seconds=0.1, random_seeds=1, task_seconds=0
    )
    with Referee(settings, device=detect("null"), cache=tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.mark.slow
def test_in_the_sandbox(referee: Referee, on_path: Callable[..., Path]) -> None:
    on_path()
    said: list[str] = []
    seen = _observe(NsightObserver(referee, said.append))
    assert not said
    assert seen.classification is not None
    assert seen.classification.kernel == KERNEL


@pytest.mark.slow
def test_times_in_the_sandbox(referee: Referee) -> None:
    said: list[str] = []
    seen = _observe(NsightObserver(referee, said.append))
    assert "not installed" in said[0]
    assert "aten::_softmax" in {m.kernel for m in seen.metrics}  # the null device's kernels are operators
    assert seen.kernel_s is not None


@pytest.mark.slow
def test_what_a_subject_sees(referee: Referee, tmp_path: Path) -> None:
    """Nothing of the user's, nothing to write to but its results, no network but its own."""
    mine = tmp_path / "mine"
    mine.write_text("secret")
    mine.chmod(0o644)
    with referee.subject(DEFINITION, [WORKLOAD], SOLUTION) as subject:

        def ask(code: str) -> CommandResult:
            return subject.run([sys.executable, "-c", code], timeout_s=60)

        assert "FileNotFoundError" in ask(f"open({str(mine)!r})").stderr
        requests = Path(subject.command()[-1])
        refused = ("Permission denied", "Read-only")
        assert any(w in ask(f"open({str(requests / 'x')!r}, 'w')").stderr for w in refused)
        assert "unreachable" in ask("import socket; socket.create_connection(('1.1.1.1', 80), 5)").stderr
        assert ask(f"open({str(subject.results / 'x')!r}, 'w').write('1')").returncode == 0
        assert (subject.results / "x").read_text() == "1"
        with subject.alone():
            pass
    assert not requests.exists()


@pytest.mark.slow
def test_a_real_report_in_the_sandbox(referee: Referee, on_path: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    on_path(report=h100.written_to(tmp_path))
    said: list[str] = []
    seen = _observe(NsightObserver(referee, said.append))
    assert not said
    assert {m.kernel for m in seen.metrics} == {h100.KERNEL}
    assert seen.classification is not None
    assert seen.classification.bound is Bound.MEMORY


def test_kernel_times_count_the_device_once() -> None:
    cuda, cpu = torch.autograd.DeviceType.CUDA, torch.autograd.DeviceType.CPU

    def event(
        name: str, kind: object, us: float, annotation: bool = False, own: float = 0
    ) -> SimpleNamespace:
        return SimpleNamespace(
            name=name,
            device_type=kind,
            is_user_annotation=annotation,
            self_cpu_time_total=own,
            time_range=SimpleNamespace(elapsed_us=lambda: us),
        )

    events = [
        event("aten::mul", cpu, 50.0, own=8.0),
        event("mul_kernel", cuda, 10.0),
        event("mul_kernel", cuda, 12.0),
        event("sum_kernel", cuda, 30.0),
        event("range", cuda, 60.0, annotation=True),
    ]

    def found(kind: Any) -> list[tuple[str, int, int]]:
        return [(k.name, round(k.seconds * 1e6), k.launches) for k in kernel_times(events, kind)]

    assert found(cuda) == [("sum_kernel", 30, 1), ("mul_kernel", 22, 2)]
    assert found(cpu) == [("aten::mul", 8, 1)]
