"""Lower precision is refused early if it cannot be used, and never tried without a permission."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

import agentforge
from agentforge.config import Settings
from agentforge.devices import DeviceSpec
from agentforge.runs.checks import check_permission
from agentforge.schema import Permission, RunKind, RunSettings, UsageError
from agentforge.store import Store
from tests.cli.conftest import Run, home, run

__all__ = ["home", "run"]

CPU = DeviceSpec(kind="cpu", name="a CPU", architecture="x86-64")
METRIC = """
import torch
from math import sqrt

def accuracy(model):
    return 1.0

class Score:
    pass

def broken(model):
    raise OSError("no data here")
"""
FORM = ("--metric", "metric.py:accuracy", "--bound", "0.5%")


@pytest.fixture
def metric(tmp_path: Path) -> Path:
    path = tmp_path / "metric.py"
    path.write_text(METRIC)
    return path


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--allow", "bf16"), "give a metric of yours and a bound too, --allow bf16 --metric metric.py"),
        (("--allow", "int8", "--bound", "1%"), "--allow int8 --metric metric.py:accuracy --bound 0.5%"),
        (FORM, "--metric and --bound go with --allow"),
        (("--allow", "fp8", *FORM), "takes bf16 or int8, not 'fp8'"),
        (("--allow", "bf16", *FORM[:3], "much"), "not 'much'"),
        (("--allow", "bf16", "--metric", "none.py:f", "--bound", "1"), "cannot be read (No such file"),
        (("--allow", "bf16", "--metric", "metric.py:wrong", "--bound", "1"), "it has: accuracy, Score"),
        (("--allow", "bf16", "--metric", "broken.py:f", "--bound", "1"), "is no valid Python"),
        (("--allow", "bf16", *FORM, "--reference", "model.py"), "goes with a whole model"),
    ],
)
def test_the_command_says_it_before_the_model_is_loaded(
    run: Run, metric: Path, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    (tmp_path / "model.py").write_text("import time\ntime.sleep(60)\n")
    (tmp_path / "broken.py").write_text("for\n")
    answer = run("optimize", "model.py", "--device", "cpu", *options)
    assert answer.code == 2
    assert says in answer.err
    assert "Traceback" not in answer.err
    assert run("runs", "list", "--json").json == {"runs": []}


def test_a_range_of_shapes_has_no_lower_precision(run: Run, metric: Path, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import time\ntime.sleep(60)\n")
    options = ("--device", "cpu", "--shapes", "batch=1..4", "--allow", "bf16", *FORM)
    answer = run("optimize", "model.py", *options)
    assert (answer.code, "--allow and --shapes do not go together" in answer.err) == (2, True)
    assert run("runs", "list", "--json").json == {"runs": []}


def test_a_metric_may_be_imported_and_only_a_cpu_is_supported(metric: Path) -> None:
    permission = Permission.parse("bf16", f"{metric}:accuracy", "1%")
    assert permission is not None
    for name in ("accuracy", "Score", "sqrt"):
        named = permission.model_copy(update={"metric": f"{metric}:{name}"})
        check_permission(named, RunKind.MODEL, CPU)
    gpu = DeviceSpec(kind="cuda", name="a GPU", architecture="sm_90")
    with pytest.raises(UsageError, match=r"works on a CPU only, and this run is on a GPU.*--device cpu"):
        check_permission(permission, RunKind.MODEL, gpu)
    check_permission(None, RunKind.KERNEL, gpu)


@pytest.mark.slow
def test_a_metric_that_fails_with_the_original_model_ends_the_run_before_its_profile(
    run: Run, metric: Path, model: Path
) -> None:
    answer = run(
        "optimize", str(model), "--device", "cpu", "--allow", "bf16", "--metric", f"{metric}:broken",
        "--bound", "1%",
    )  # fmt: skip
    assert answer.code == 2
    assert "the metric broken with the original model failed: OSError: no data here" in answer.err
    assert "Traceback" not in answer.err
    (failed,) = run("runs", "list", "--json").json["runs"]
    assert failed["status"] == "failed"
    assert "profile" not in run("runs", "show", failed["id"], "--json").json["run"]["error"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"allow": "bf16"}, "`allow` bf16 `metric` metric.py:accuracy `bound` 0.5%"),
        ({"metric": lambda model: 1.0}, "go with `allow`"),
        ({"allow": "bf16", "metric": 3, "bound": 1}, "not a int"),
        ({"allow": "bf16", "metric": lambda model: 1.0}, "a metric of yours and a bound"),
        ({"allow": "bf16", "metric": lambda model: 1.0, "bound": "x"}, "not 'x'"),
    ],
)
def test_python_says_the_same(settings: Settings, options: Mapping[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("(", r"\(")):
        agentforge.optimize(torch.nn.Linear(2, 2), torch.randn(2, 2), settings=settings, **options)


@pytest.mark.parametrize(
    ("model", "inputs", "options", "says"),
    [
        ("net", None, {}, "give example inputs"),
        ("net", "x", {"shapes": "rows=1..4"}, "does not know rows"),
        ("net", "x", {"generate": "prompt=2,new=2"}, "leave out the example inputs"),
        ("net", None, {"generate": "prompt=2"}, "does not read"),
        ("net", None, {"generate": "prompt=2,new=2"}, "goes with a causal language model"),
        ("missing.py", None, {}, "does not exist"),
        ("net", "x", {"shapes": "batch=1..4", "allow": "bf16", "metric": abs, "bound": 1}, "`shapes` do not"),
    ],
)
def test_python_says_what_cannot_work_before_anything_is_loaded(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    inputs: str | None,
    options: Mapping[str, Any],
    says: str,
) -> None:
    monkeypatch.setattr("agentforge.runs.execution.Background", lambda load: pytest.fail("it is loaded"))
    given = torch.nn.Linear(2, 2).eval() if model == "net" else model
    example = torch.randn(2, 2) if inputs else None
    with pytest.raises(UsageError, match=says):
        agentforge.optimize(given, example, settings=settings, device="cpu", progress=False, **options)


def test_a_function_that_cannot_be_sent_is_one_sentence(settings: Settings) -> None:
    import threading

    lock = threading.Lock()
    with pytest.raises(UsageError, match="the metric cannot be sent to another process"):
        agentforge.optimize(
            torch.nn.Linear(2, 2),
            torch.randn(2, 2),
            settings=settings,
            allow="bf16",
            metric=lambda model: lock.locked(),
            bound=0.1,
        )


NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(512, 1024), torch.nn.Linear(1024, 16)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))

def confidence(model):
    torch.manual_seed(7)
    return model(torch.randn(256, 512)).softmax(-1).amax(-1).mean()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("allow", "bound"), [("int8", "2%"), ("bf16", "0%")])
def test_a_whole_run(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allow: str, bound: str
) -> None:
    """A bound of 0 % drops what was proven."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "permitted_net.py").write_text(NET)
    monkeypatch.syspath_prepend(str(tmp_path / "net"))
    monkeypatch.delitem(sys.modules, "permitted_net", raising=False)
    net = importlib.import_module("permitted_net")
    model, x = net.Net().eval(), torch.randn(256, 512)
    result = agentforge.optimize(
        model, (x,), settings=settings, attempts=1, out=tmp_path / "fast", progress=False,
        allow=allow, metric=net.confidence, bound=bound,
    )  # fmt: skip
    assert result.finished
    report = json.loads((tmp_path / "fast" / "report.json").read_text())
    low = {t["mode"] for t in report["trials"]} & {"kernels+bf16", "kernels+int8"}
    with Store(settings.url, create=False) as store:
        kept = store.get_record(result.run, RunSettings)
    assert kept is not None
    assert low == {f"kernels+{allow}"}, report["trials"]
    assert kept.permission is not None
    said = report["precision"]["summary"]
    assert said.startswith(f"{allow} was allowed: ")
    assert said in result.report.summary
    assert f"Lower precision: {said}." in (tmp_path / "fast" / "report.md").read_text()
    if not report["precision"]["installed"]:
        assert report["mode"] not in low
        return
    assert bound != "0%"
    values = report["precision"]["metric_values"]
    assert 0 < abs(values["changed"] - values["original"]) <= 0.02 * values["original"]
    assert said in result.report.headline
    with torch.inference_mode():
        got, expected = result.model(x), model(x)
    assert 1e-4 < float((got - expected).norm() / expected.norm()) < 0.05
