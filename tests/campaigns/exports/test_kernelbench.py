"""KernelBench's own analysis reads an export."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentforge.campaigns.exports import export_campaign
from agentforge.schema import StitchResult, SuiteProblem, TryOutcome
from agentforge.store import Store
from tests.campaigns.conftest import finish
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
        export_campaign(store, "night", folder)


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


@pytest.mark.skipif(
    not (_CLONE / "src/kernelbench").is_dir(), reason="KERNELBENCH_CLONE names no clone of KernelBench"
)
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
