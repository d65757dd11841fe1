"""Solutions in the layouts of FlashInfer Trace, SOL-ExecBench and GPU MODE run beside their tasks."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentforge.campaigns.audit.traces import FlashInferSolutions, SolSolutions
from agentforge.campaigns.exports import export_campaign, not_built
from agentforge.campaigns.exports.by_shape import ShapeKernels, entry_files
from agentforge.campaigns.exports.solutions import _task
from agentforge.campaigns.report import build_report
from agentforge.campaigns.suites import Selection, open_suite, selected
from agentforge.exports import leaderboard_limits
from agentforge.languages.solutions.single_file import embedded_files
from agentforge.problems.kernelbench import load_problem
from agentforge.schema import (
    Campaign,
    SourceFile,
    StitchResult,
    SuiteProblem,
    TryOutcome,
    UsageError,
    Workload,
)
from agentforge.schema.flashinfer.reader import solution_from_flashinfer
from agentforge.stitch.files import OPTIONAL
from agentforge.store import Store
from tests.campaigns.conftest import finish
from tests.campaigns.suites.test_repositories import TASK, write_task
from tests.campaigns.suites.test_traces import definition, lines, workload, write_sol
from tests.runs.conftest import MODEL
from tests.stitch.making import stitch_in_process, target_of
from tests.store import nouns

LOADER = "agentforge_stitch/artifact.py"
_RUN = """
import importlib.util, json, sys, torch
sys.modules["agentforge"] = None  # as on a machine that lacks it
spec = importlib.util.spec_from_file_location("submission", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
found = []
for rows in json.loads(sys.argv[2]):
    found.append(eval(sys.argv[3])(module, rows))
    counted = sys.modules.get("agentforge_cpp")
    found.append(sum(counted.calls().values()) if counted else 0)
print(json.dumps(found))
"""
_TRACE = """lambda m, rows: torch.equal(
    m.run(x := torch.rand(rows, 8), y := torch.rand(rows, 4), 2.0), x[:, :4] * y * 2.0)"""
_OTHER_NUMBER = """lambda m, rows: torch.equal(
    m.run(x := torch.rand(rows, 8), y := torch.rand(rows, 4), 3.0), x[:, :4] * y * 3.0)"""
_GRADIENT = """lambda m, rows: torch.equal(torch.autograd.grad(
    m.run(x := torch.rand(rows, 8), y := torch.rand(rows, 4, requires_grad=True), 2.0).sum(), y)[0],
    x[:, :4] * 2.0)"""
_GPU_MODE = """lambda m, size: torch.equal(m.custom_kernel(
    (x := torch.rand(size), torch.empty(size), {"w": torch.ones(size)}, {"factor": 3})), x * 3)"""
_OTHER_FACTOR = _GPU_MODE.replace("3", "4")


def run(entry: Path, sizes: Sequence[int], call: str) -> list[Any]:
    """For each size, whether the answer is right, and the calls of kernels until then."""
    command = [sys.executable, "-c", _RUN, str(entry), json.dumps(sizes), call]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def unpacked(solution: dict[str, Any], folder: Path) -> Path:
    for source in solution["sources"]:
        path = folder / source["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source["content"])
    return folder / str(solution["spec"]["entry_point"]).partition("::")[0]


def campaign(store: Store, suite: str, folder: Path, only: str = "*") -> tuple[Campaign, list[SuiteProblem]]:
    """A campaign whose problems all have verified kernels, each for its own sizes."""
    problems = list(selected(open_suite(suite), Selection(only=only)))
    made, _ = nouns.campaign(len(problems), suite=suite)
    made = made.model_copy(update={"arms": made.arms[:1]})
    store.create_campaign(made, problems)
    for _ in problems:
        item = store.take_item(made.name, "host:1", 600)
        assert item is not None
        known = next(p for p in problems if p.id == item.problem)
        target = target_of(known.source)
        names = load_problem(target.definition).workloads
        several = tuple(Workload(name=name, key=name, source="reference") for name in names)
        target = target.model_copy(update={"workloads": several or target.workloads})
        stitched = stitch_in_process(target, folder / f"stitched{item.id}")
        finish(store, f"run-{item.id}", speedup=2.0, solution=stitched.solution)
        store.attach_run(item, f"run-{item.id}")
        store.end_item(item, TryOutcome.DONE)
    return made, problems


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("only", ["*", "*/scaled/*"])
def test_a_sol_solution_runs_the_kernels_of_each_workload(store: Store, tmp_path: Path, only: str) -> None:
    """Whether all workloads were judged in one verdict, or each one alone."""
    suite = tmp_path / "suite"
    write_sol(suite / "L1" / "scaled", definition(), workload(3), workload(5))
    made, problems = campaign(store, f"sol:{suite}", tmp_path, only)
    assert len(problems) == (1 if only == "*" else 2)
    (file,) = export_campaign(store, build_report(store, made.name), suite)
    assert file == suite / "L1" / "scaled" / f"solution_{made.arms[0].name}.json"
    solution = json.loads(file.read_text())
    assert (solution["definition"], solution["spec"]["languages"]) == ("scaled", ["pytorch"])
    whole = "verified by AgentForge on its 2 workloads in one verdict"
    assert (solution["description"] == whole) is (only == "*")
    assert all(source["content"] for source in solution["sources"])
    entry = unpacked(solution, tmp_path / "unpacked")
    right, first, also_right, second, fallen_back, third = run(entry, [3, 5, 7], _TRACE)
    assert right
    assert also_right
    assert fallen_back
    assert 0 < first < second == third
    assert run(entry, [3, 5], _OTHER_NUMBER) == [True, 0, True, 0]
    assert run(entry, [3], _GRADIENT)[0]
    # `agentforge audit` reads it beside its task
    found = list(SolSolutions().submissions(suite, None, tmp_path / "scratch"))
    assert [s.unusable for s in found] == ["", ""]


@pytest.mark.slow
def test_a_flashinfer_solution_lies_in_its_data_set(store: Store, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    (suite / "definitions" / "pointwise").mkdir(parents=True)
    (suite / "definitions" / "pointwise" / "scaled.json").write_text(json.dumps(definition()))
    (suite / "workloads").mkdir()
    listed = [{"definition": "scaled", "workload": workload(rows)} for rows in (3, 5)]
    (suite / "workloads" / "scaled.jsonl").write_text(lines(*listed))
    made, _ = campaign(store, f"flashinfer:{suite}", tmp_path)
    (file,) = export_campaign(store, build_report(store, made.name), suite)
    assert file.parent == suite / "solutions" / "agentforge" / "pointwise" / "scaled"
    solution = json.loads(file.read_text())
    assert (solution["name"], solution["spec"]["language"]) == (file.stem, "python")
    assert solution_from_flashinfer(solution, definition(), "0" * 16).entry_class == "ModelNew"
    assert run(unpacked(solution, tmp_path / "unpacked"), [5], _TRACE)[0]
    assert [s.unusable for s in FlashInferSolutions().submissions(suite, None, tmp_path / "s")] == ["", ""]


@pytest.mark.slow
@pytest.mark.parametrize(("only", "number"), [("*", 2), ("*[!s]", 4)])
def test_a_submission_to_gpu_mode_is_one_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: str, number: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    task = TASK.replace("benchmarks:\n", 'benchmarks:\n  - {"size": 65, "seed": 3}\n')
    write_task(tmp_path / "suite" / "pmpp" / "scale_py", task)
    made, problems = campaign(store, f"gpu-mode:{tmp_path / 'suite'}", tmp_path, only)
    assert len(problems) == number
    (file,) = export_campaign(store, build_report(store, made.name), tmp_path / "out")
    assert file == tmp_path / "out" / "pmpp" / "scale_py" / f"submission_{made.arms[0].name}.py"
    right, first, also_right, second, fallen_back, third = run(file, [5, 64, 7], _GPU_MODE)
    assert right
    assert also_right
    assert fallen_back
    assert 0 < first < second == third
    assert run(file, [5], _OTHER_FACTOR) == [True, 0]
    files = embedded_files(ast.parse(file.read_text())) or {}
    assert [path for path in files if path.endswith("/artifact.py")] == [f"runtime/{LOADER}"]
    assert list(leaderboard_limits([file])) == []
    assert {f"runtime/{path}" for path in OPTIONAL}.isdisjoint(files)


@pytest.mark.parametrize("ending", ["benchmarks", "benchmarks/1"])
def test_a_task_may_lie_in_a_folder_whose_name_begins_like_its_kind(ending: str) -> None:
    problem = SuiteProblem(id=f"p/benchmarks_amd/x/{ending}", target="x.py", native={"kind": "benchmarks"})
    assert _task(problem) == "p/benchmarks_amd/x"


def test_optional_modules_of_the_runtime_stay_where_they_may_be_imported(tmp_path: Path) -> None:
    made = stitch_in_process(MODEL, tmp_path / "stitched").solution
    texts = {file.path: file.content for file in made.sources}
    graph, branches = OPTIONAL

    def kept(names: tuple[str, ...] = (), changes: Mapping[str, str] | None = None) -> set[str]:
        sources = tuple(SourceFile(path=p, content=t) for p, t in {**texts, **(changes or {})}.items())
        one = ShapeKernels(made.model_copy(update={"sources": sources}), ((1,),))
        files = entry_files("", [one], names=names)
        return {path for path in OPTIONAL if f"runtime/{path}" in files}

    assert kept() == set()
    assert kept(("x",)) == {graph, branches}  # another solution in the process may need them
    mode = {"plan.json": texts["plan.json"].replace('"mode": "kernels"', '"mode": "kernels+graph+streams"')}
    assert kept(changes=mode) == {graph, branches}
    older = {LOADER: f"from .graph import Replayed\n{texts[LOADER]}"}
    assert kept(changes=older) == {graph}


def test_run_time_modules_of_another_version_stay_beside_their_kernels(tmp_path: Path) -> None:
    made = stitch_in_process(MODEL, tmp_path / "stitched").solution
    changed = tuple(
        file.model_copy(update={"content": f"{file.content}# another version\n"})
        if file.path == "agentforge_cpp.py"
        else file
        for file in made.sources
    )
    both = [ShapeKernels(made, ((1,),)), ShapeKernels(made.model_copy(update={"sources": changed}), ((2,),))]
    found = [path for path in entry_files("", both) if path.endswith("agentforge_cpp.py")]
    assert found == ["runtime/agentforge_cpp.py", "workload_2/agentforge_cpp.py"]


def test_what_sol_does_not_build_is_left_out_and_named(store: Store, tmp_path: Path) -> None:
    """Its driver replaces `load_inline` by an error."""
    suite = tmp_path / "suite"
    write_sol(suite / "scaled", definition(), workload(3), workload(5))
    made, problems = campaign(store, f"sol:{suite}", tmp_path, "scaled/*")
    assert not_built(store, build_report(store, made.name)) == ()
    names = []
    for number, problem in enumerate(problems, 1):
        stitched = store.get_record(f"run-{number}", StitchResult)
        assert stitched is not None and stitched.solution is not None
        old = store.get_solution(stitched.solution)
        inline = SourceFile(
            path="kernels/a/k.py", content="from torch.utils.cpp_extension import load_inline"
        )
        changed = store.save_solution(old.model_copy(update={"sources": (*old.sources, inline)}))
        store.save_record(f"run-{number}", stitched.model_copy(update={"solution": changed}))
        names.append(f"{problem.id} ({made.arms[0].name})")
        assert not_built(store, build_report(store, made.name)) == tuple(names)
        if number == 1:
            (file,) = export_campaign(store, build_report(store, made.name), tmp_path / "out")
            assert "load_inline" not in file.read_text() and "for 1 of its workloads" in file.read_text()
    with pytest.raises(UsageError, match="which SOL-ExecBench forbids: write artifacts"):
        export_campaign(store, build_report(store, made.name), tmp_path / "out")


def test_a_campaign_without_a_verified_solution_has_nothing_to_write(store: Store, tmp_path: Path) -> None:
    write_sol(tmp_path / "suite" / "scaled", definition(), workload(3))
    suite = f"sol:{tmp_path / 'suite'}"
    made, _ = nouns.campaign(1, suite=suite)
    store.create_campaign(made, list(selected(open_suite(suite), Selection())))
    with pytest.raises(UsageError, match="no verified solution yet"):
        export_campaign(store, build_report(store, made.name), tmp_path / "out")
