"""KernelBench's own analysis reads an export, and its own evaluator accepts one."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentforge.campaigns.exports import export_campaign
from agentforge.campaigns.report import build_report
from agentforge.codegen import Options, generate
from agentforge.schema import (
    Definition,
    DType,
    Solution,
    StitchResult,
    SuiteProblem,
    TensorInput,
    TryOutcome,
    Workload,
)
from agentforge.store import Store
from agentforge.testing.language import make_solution
from tests.campaigns.conftest import finish
from tests.stitch.making import stitch_in_process
from tests.store import nouns

_CLONE = Path(os.environ.get("KERNELBENCH_CLONE", ""))
"""A clone of KernelBench at the commit that docs/campaigns.md names as the reader."""
_ANALYSIS = """
import importlib.util, json, sys, types
clone, run, baseline, output = sys.argv[1:]
for name in ("pydra", "tabulate", "kernelbench"):  # the last one imports clients of LLMs
    sys.modules[name] = types.ModuleType(name)
sys.modules["kernelbench"].__path__ = [clone + "/src/kernelbench"]
sys.modules["pydra"].Config, sys.modules["pydra"].REQUIRED = object, None
sys.modules["pydra"].main = lambda base: lambda function: function
sys.modules["tabulate"].tabulate = lambda *args, **kwargs: ""
spec = importlib.util.spec_from_file_location("analysis", clone + "/scripts/benchmark_eval_analysis.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
found = module.analyze_greedy_eval(run, "null", baseline, 1)
open(output, "w").write(json.dumps(found))
"""
_EVALUATION = """
import contextlib, json, sys, types
import torch
clone, reference, solution, output = sys.argv[1:]
for name in ("dotenv", "litellm", "openai", "requests", "tqdm"):  # for clients of LLMs
    sys.modules[name] = types.ModuleType(name)
sys.modules["dotenv"].load_dotenv = lambda: None
sys.modules["litellm"].completion = sys.modules["openai"].OpenAI = sys.modules["tqdm"].tqdm = None
sys.path.insert(0, clone + "/src")
from kernelbench import eval as evaluator

def nothing(*args, **kwargs):
    pass

class OnTheCPU:  # torch as the evaluator sees it; the reference and the solution have torch itself
    cuda = types.SimpleNamespace(
        is_available=lambda: True, get_device_name=lambda device: "a CPU",
        device=lambda device: contextlib.nullcontext(), manual_seed=nothing, set_device=nothing,
        synchronize=nothing, empty_cache=nothing, reset_peak_memory_stats=nothing,
    )
    def __getattr__(self, name):
        return getattr(torch, name)

evaluator.torch = OnTheCPU()
found = evaluator.eval_kernel_against_ref(
    open(reference).read(), open(solution).read(), num_correct_trials=5, device=torch.device("cpu")
)
calls = sum(sys.modules["agentforge_cpp"].calls().values())
open(output, "w").write(json.dumps([found.compiled, found.correctness, str(found.metadata), calls]))
"""
"""KernelBench's evaluator names its GPU, waits for it and frees its memory; only that is left out. It loads
both models, draws weights and inputs, and compares five answers within its tolerance on any device."""
_NEEDS_CLONE = pytest.mark.skipif(
    not (_CLONE / "src/kernelbench").is_dir(), reason="KERNELBENCH_CLONE names no clone of KernelBench"
)


def three(folder: Path, names: tuple[str, ...]) -> None:
    """Export a campaign: 3x, verified without torch.compile's time, and failed."""
    with Store(f"sqlite:///{folder / 'three.db'}") as store:
        made, _ = nouns.campaign(len(names), suite="kernelbench:/x")
        made = made.model_copy(update={"arms": made.arms[:1]})
        store.create_campaign(made, [SuiteProblem(id=f"level1/{name}", target="x.py") for name in names])
        for number in range(len(names)):
            item = store.take_item("night", "host:1", 600)
            assert item is not None
            if number == 2:
                store.end_item(item, TryOutcome.FAILED, "it does not import")
                continue
            run = f"run-{number}"
            finish(store, run, speedup=3.0)
            if number == 1:
                without_compile(store, run)
            store.attach_run(item, run)
            store.end_item(item, TryOutcome.DONE)
        export_campaign(store, build_report(store, "night"), folder)


def without_compile(store: Store, run: str) -> None:
    stitched = store.get_record(run, StitchResult)
    assert stitched is not None and stitched.evaluation is not None
    evaluation = store.get_evaluation(stitched.evaluation)
    timed = evaluation.performance
    assert timed is not None
    only = {name: {"eager": getattr(timed, name)["eager"]} for name in ("baseline_s", "speedup")}
    bare = evaluation.model_copy(update={"performance": timed.model_copy(update=only)})
    stored = store.save_evaluation(bare, run)
    store.save_record(run, stitched.model_copy(update={"evaluation": stored}))


def test_a_verified_problem_has_no_entry_without_a_time(tmp_path: Path) -> None:
    """KernelBench's analysis divides by it; one that is not verified must be there to be counted."""
    three(tmp_path, ("1_a", "2_b", "3_c"))
    times: dict[str, Any] = {
        name: json.loads((tmp_path / f"results/timing/null/night-base-{name}.json").read_text())["level1"]
        for name in ("eager", "compile")
    }
    assert list(times["eager"]) == ["1_a.py", "2_b.py", "3_c.py"]
    assert list(times["compile"]) == ["1_a.py", "3_c.py"]
    assert times["compile"]["3_c.py"]["mean"] == -1.0


@_NEEDS_CLONE
@pytest.mark.parametrize(("baseline", "verified", "speedup"), [("eager", 2, 3.0), ("compile", 1, 1.5)])
def test_kernelbenchs_analysis_reads_it(tmp_path: Path, baseline: str, verified: int, speedup: float) -> None:
    pytest.importorskip("numpy", reason="KernelBench's analysis needs numpy")
    files = sorted((_CLONE / "KernelBench/level1").glob("*.py"), key=lambda p: int(p.stem.partition("_")[0]))
    three(tmp_path, tuple(path.stem for path in files[:3]))
    output = tmp_path / "output.json"
    command = [sys.executable, "-c", _ANALYSIS, str(_CLONE), "night-base-level1", f"night-base-{baseline}"]
    done = subprocess.run(
        [*command, str(output)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(output.read_text())
    assert (found["total_eval"], found["correct_count"]) == (3, 2)
    assert found["geo_mean_speedup"] == pytest.approx(speedup)
    assert found["fast_p"]["1.0"] == pytest.approx(verified / (3 - (baseline == "compile")))


def generated(definition: Definition) -> Solution:
    """Kernels in C++ for a region's own inputs."""
    scope: dict[str, Any] = {}
    exec(definition.reference, scope)
    names = list(inspect.signature(scope["Model"].forward).parameters)[1:]
    drawn = zip(names, scope["get_inputs"](), strict=True)
    inputs = (TensorInput(name=n, shape=tuple(t.shape), dtype=DType.FLOAT32) for n, t in drawn)
    files = generate(definition, (Workload(name="w", inputs=tuple(inputs)),), Options(threads=2))
    return make_solution("cpp", {file.path: file.content for file in files}, definition=definition.hash)


@pytest.mark.slow
@_NEEDS_CLONE
@pytest.mark.parametrize("name", ["19_ReLU", "88_MinGPTNewGelu", "36_RMSNorm_"])
def test_kernelbenchs_evaluator_accepts_an_exported_solution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """At small sizes: the clone's own take gigabytes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = (_CLONE / f"KernelBench/level1/{name}.py").read_text()
    text = re.sub(r"^(batch_size|features|dim\d?) = \d+", r"\1 = 8", text, flags=re.MULTILINE)
    with Store(f"sqlite:///{tmp_path / 'one.db'}") as store:
        made, _ = nouns.campaign(1, suite="kernelbench:/x")
        made = made.model_copy(update={"arms": made.arms[:1]})
        store.create_campaign(made, [SuiteProblem(id=f"level1/{name}", target="x.py")])
        item = store.take_item("night", "host:1", 600)
        assert item is not None
        stitched = stitch_in_process(text, tmp_path / "stitched", choose=generated)
        finish(store, "run-1", speedup=2.0, solution=stitched.solution)
        store.attach_run(item, "run-1")
        store.end_item(item, TryOutcome.DONE)
        export_campaign(store, build_report(store, "night"), tmp_path)
    number = name.partition("_")[0]
    exported = tmp_path / f"runs/night-base-level1/level_1_problem_{number}_sample_0_kernel.py"
    compiled, correct, metadata, calls = evaluated(tmp_path, text, exported)
    assert (compiled, correct) == (True, True), metadata
    assert "(5 / 5)" in metadata
    assert calls >= 5, "the kernels did not run"
    wrong = re.sub(r"^(        return )(.+)$", r"\1(\2) * 1.001", text, flags=re.MULTILINE)
    assert wrong != text
    assert evaluated(tmp_path, wrong, exported)[:2] == [True, False]


def evaluated(folder: Path, reference: str, solution: Path) -> list[Any]:
    """Whether it compiled and is correct, KernelBench's remarks, and the calls of kernels."""
    (folder / "reference.py").write_text(reference)
    output = folder / "evaluated.json"
    paths = (str(_CLONE), str(folder / "reference.py"), str(solution), str(output))
    done = subprocess.run(
        [sys.executable, "-c", _EVALUATION, *paths],
        cwd=folder, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(json.loads(output.read_text()))
