"""A range of shapes: dispatch in the artifact, and the choice between ranges and measured shapes."""

from __future__ import annotations

import copy
import inspect
import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from agentforge.codegen import Options, generate
from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec, Roofline
from agentforge.frontends import FrontendOptions, load_target
from agentforge.languages import write_solution
from agentforge.profiling import profile_target
from agentforge.profiling.speed_of_light import at_ceilings
from agentforge.referee import Referee
from agentforge.schema import (
    BuildSpec,
    Evaluation,
    EvaluationStatus,
    Level,
    Profile,
    SizeRange,
    Solution,
    Target,
    Workload,
)
from agentforge.stitch import stitch
from agentforge.stitch.files import stitched_files
from agentforge.stitch.runtime import ranges
from agentforge.stitch.select import Selector
from agentforge.stitch.shape_report import shape_table, shape_times
from agentforge.stitch.variants import Variant, VariantBuilder, promoted
from tests.steady import SteadyReferee

from .making import import_folder
from .test_select import TARGET, Given, judged
from .test_select import promoted as promote

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(24), nn.Linear(24, 48)

    def forward(self, x, scale=1.0):
        batch, length, _ = x.shape
        y = self.linear(self.norm(x)).view(batch, length, 2, 24).transpose(1, 2)
        y = torch.sin(nn.functional.gelu(y)) * scale
        {extra}
        return y.transpose(1, 2).reshape(batch * length, 48)


def get_inputs():
    return [torch.randn(2, 6, 24)]


def get_init_inputs():
    return []
"""
DEVICE = DeviceSpec(kind="cpu", name="test", architecture="x86-64", threads=2)


Made = tuple[Target, Profile, dict[str, Solution]]


def made(folder: Path, extra: str = "pass") -> Made:
    """The target and its profile, with generated kernels for all regions."""
    path = folder / "tiny.py"
    path.write_text(MODEL.format(extra=extra))
    target = load_target(str(path), FrontendOptions(shapes="batch=1..8,seq=4..40"))
    profile = profile_target(target, DEVICE, Roofline(bandwidth=2e10, peak_flops={"float32": 1e11}), traces=1)
    chosen = {
        b.definition.hash: Solution(
            name="kernel",
            definition=b.definition.hash,
            author="test",
            spec=BuildSpec(language="cpp"),
            sources=generate(b.definition, b.workloads, Options(threads=2)),
        )
        for b in profile.bottlenecks
        if b.optimizable
    }
    return target, profile, chosen


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Of the model as it is; no test changes it."""
    return made(tmp_path_factory.mktemp("plain"))


def artifact(found: Made, folder: Path) -> tuple[Any, Any, VariantBuilder]:
    """The original, the artifact's package and the builder."""
    target, profile, chosen = found
    builder = VariantBuilder(target, promoted(profile, chosen))
    variant = builder.with_kernels([*promoted(profile, chosen)], "kernels")
    assert variant is not None
    write_solution(variant.solution, folder / "fast")
    scope: dict[str, Any] = {}
    exec(target.definition.reference, scope)
    return scope["Model"]().eval(), import_folder(folder / "fast"), builder


@pytest.mark.slow
def test_every_shape_in_the_range_has_kernels_and_others_run_the_original(
    plain: Made, tmp_path: Path
) -> None:
    original, package, builder = artifact(plain, tmp_path)
    assert not builder.notes
    fast = package.optimize(copy.deepcopy(original))
    assert package.optimize(fast) is fast
    assert inspect.signature(fast.forward) == inspect.signature(original.forward)

    def runs(*shape: int, **kwargs: Any) -> int:
        before = sum(package.calls().values())
        x = torch.randn(*shape)
        got, expected = fast(x, **kwargs), original(x, **kwargs)
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
        return sum(package.calls().values()) - before

    with torch.inference_mode():
        measured = runs(8, 40, 24)
        assert measured > 0
        for shape in [(1, 4), (1, 40), (1, 21), (2, 4), (2, 5), (7, 39), (3, 33), (8, 4)]:
            assert runs(*shape, 24) == measured, shape
        for shape in [(9, 40), (8, 41), (1, 3), (12, 2)]:
            assert runs(*shape, 24) == 0, shape
        assert runs(3, 33, 24, scale=2.0) == 0
        before = sum(package.calls().values())
        fast(x=torch.randn(3, 33, 24))
        assert sum(package.calls().values()) == before + measured
    assert runs(3, 33, 24) == 0  # gradients
    assert type(package.restore(fast)) is type(original)


@pytest.mark.slow
def test_a_model_that_depends_on_the_shape_has_kernels_only_for_measured_shapes(tmp_path: Path) -> None:
    original, package, builder = artifact(made(tmp_path, "y = y + 1 if length % 16 == 7 else y"), tmp_path)
    assert any(
        "have kernels: torch.export finds" in note or "graphs differ" in note for note in builder.notes
    )
    fast = package.optimize(copy.deepcopy(original))
    with torch.inference_mode():
        for shape, kernels in [((8, 40), True), ((3, 23), False), ((3, 24), False)]:
            before = sum(package.calls().values())
            x = torch.randn(*shape, 24)
            torch.testing.assert_close(fast(x), original(x), rtol=1e-5, atol=1e-5)
            assert (sum(package.calls().values()) > before) is kernels


@pytest.mark.slow
def test_the_referee_sees_the_kernels_run_at_each_shape_and_checks_others(
    plain: Made, tmp_path: Path
) -> None:
    target, profile, chosen = plain
    settings = RefereeSettings(
        threads=2, quick_seconds=0.2, quick_blocks=2, compile_baseline=False, task_seconds=0
    )
    with Referee(settings, device=DEVICE, cache=tmp_path / "cache") as referee:
        found = stitch(
            target,
            profile,
            chosen,
            tmp_path / "fast",
            referee=SteadyReferee(referee, lambda _: 2.0),
            device=DEVICE,
            cache=tmp_path / "cache",
        )
    assert found.proven, found.report["trials"]
    assert found.kernels
    assert all(k["runs_seen"] == k["runs_expected"] > 0 for k in found.report["kernels"])
    levels = {row["shape"]: row["level"] for row in found.report["shapes"]}
    assert {name for name, level in levels.items() if level == "full"} == {w.name for w in target.workloads}
    assert {name for name, level in levels.items() if level == "quick"} == {w.name for w in target.probes}
    assert (
        "| shape | eager | best baseline | artifact | regret |" in (tmp_path / "fast/report.md").read_text()
    )
    assert json.loads((tmp_path / "fast/plan.json").read_text())["ranges"]
    verify = [sys.executable, str(tmp_path / "fast/verify.py"), "--rounds", "1"]
    assert subprocess.run(verify, check=False).returncode == 0


@pytest.mark.slow
def test_a_profile_of_a_range_stays_the_same_at_the_same_ceilings(plain: Made) -> None:
    _, profile, _ = plain
    again = at_ceilings(profile, DEVICE, Roofline(bandwidth=2e10, peak_flops={"float32": 1e11}))
    before, after = ({b.definition.hash: b for b in p.bottlenecks} for p in (profile, again))
    assert before.keys() == after.keys()
    assert any(len(b.workloads) > 1 for b in before.values())
    for name, bottleneck in before.items():
        other = after[name]
        assert other.bound is bottleneck.bound
        for number in ("sol_s", "gain_s", "speedup_limit"):
            assert getattr(other, number) == pytest.approx(getattr(bottleneck, number)), (name, number)


def test_of_too_many_shapes_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_MOST", 2)
    monkeypatch.setattr(ranges, "stitched_forward", lambda original, unit, classes: lambda self, x: unit)
    monkeypatch.setattr(ranges, "subclass", lambda original, unit, forward: forward)
    entry = {
        "sizes": [{"position": 0, "name": "x", "dimension": 0}],
        "names": ["n"],
        "example": [1],
        "low": [1],
        "high": [9],
        "plan": {"parts": ["{}"], "terms": []},
        "source": {"parts": ["rows ", ""], "terms": ["n"]},
    }
    units: list[str] = []

    def make(plan: dict[str, Any], source: str) -> Any:
        units.append(source)
        return source

    forward: Any = ranges.Ranges([entry], make).stitched_class(torch.nn.Identity, ())
    units.clear()
    for n in (1, 2, 3, 2, 3, 1):
        assert forward(None, torch.ones(n)) == f"rows {n}"
    assert units == ["rows 1", "rows 2", "rows 3", "rows 1"]


def test_a_known_shape_is_found_while_another_thread_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "_is_compiling_flag", True)  # as Dynamo sets it, for all threads
    test_of_too_many_shapes_the_oldest_is_forgotten(monkeypatch)


@pytest.mark.parametrize("mode", ["symbolic", "real"])
def test_a_trace_at_a_new_shape_records_the_original(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(ranges, "subclass", lambda original, unit, forward: forward)
    entry = {
        "sizes": [{"position": 0, "name": "input", "dimension": 0}],
        "names": ["n"],
        "example": [1],
        "low": [1],
        "high": [9],
        "plan": {"parts": ["{}"], "terms": []},
        "source": {"parts": [""], "terms": []},
    }
    units: list[Any] = []

    def make(plan: dict[str, Any], source: str) -> Any:
        units.append(plan)
        return plan

    forward: Any = ranges.Ranges([entry], make).stitched_class(torch.nn.ReLU, ())
    record: Any = make_fx(partial(forward, torch.nn.ReLU()), tracing_mode=mode)  # type: ignore[arg-type]
    traced = record(torch.ones(3))
    assert torch.equal(traced(torch.tensor([-1.0, 1.0, 2.0])), torch.tensor([0.0, 1.0, 2.0]))
    assert len(units) == 1, "that of the example"


class Ranged(Given):
    """Variants for a range of shapes; `wrong` ones fail on the probes."""

    ranges = True

    def __init__(self, wrong: bool) -> None:
        super().__init__(
            lambda mode, kernels, level: judged(kernels, level, over_eager=2.0, over_compile=1.5)
        )
        self.wrong = wrong
        self.probed = 0

    def _make(self, *args: Any) -> Variant:
        return replace(super()._make(*args), ranged=self.ranges)

    def evaluate(self, request: Any, *, progress: Any = None) -> Evaluation:
        if request.workloads == RANGE.probes:
            self.probed += 1
            status = EvaluationStatus.INCORRECT_NUMERICAL if self.wrong else EvaluationStatus.PASSED
            return judged(frozenset(["a"]), Level.QUICK, status=status)
        return super().evaluate(request, progress=progress)


RANGE: Target = TARGET.model_copy(
    update={
        "shapes": (SizeRange(name="batch", low=1, high=8, places=(("x", 0),)),),
        "probes": (Workload(name="batch=7"),),
    }
)


@pytest.mark.parametrize("wrong", [False, True])
def test_a_variant_that_fails_elsewhere_keeps_kernels_only_for_measured_shapes(wrong: bool) -> None:
    given: Any = Ranged(wrong)
    selection = Selector(RANGE, given, {"a": promote("a")}, given, seconds=100.0).run()
    assert selection.variant.kernels == {"a"}
    assert given.probed == 1
    assert given.ranges is not wrong
    assert [level for _, _, level in given.judged].count("full") == (2 if wrong else 1)


def test_regret_is_the_time_over_the_best_at_each_shape() -> None:
    given: Any = Ranged(False)
    selection = Selector(RANGE, given, {"a": promote("a")}, given, seconds=100.0).run()
    assert selection.trial is not None
    performance = selection.trial.evaluation.performance
    assert performance is not None
    times = {
        "batch=1": {"candidate": 2e-3, "eager": 3e-3, "compile": 1e-3},
        "batch=8": {"candidate": 4e-3, "eager": 9e-3, "compile": 8e-3},
    }
    evaluation = selection.trial.evaluation.model_copy(
        update={"performance": performance.model_copy(update={"workload_s": times})}
    )
    object.__setattr__(selection.trial, "evaluation", evaluation)
    rows = shape_times(RANGE, selection)
    assert [(r["shape"], r["best_baseline"], r["regret"]) for r in rows] == [
        ("batch=1", "compile", 2.0),
        ("batch=8", "compile", 1.0),
    ]
    assert "| batch=1 | 3.000 ms | 1.000 ms, torch.compile | 2.000 ms | 2.00x |" in shape_table(rows)
    assert shape_times(TARGET, selection) == []
    keyed = tuple(Workload(name=name, key=name, source="reference") for name in times)
    assert shape_times(TARGET.model_copy(update={"workloads": keyed}), selection) == rows


def test_an_artifact_knows_the_workloads_that_its_reference_lists() -> None:
    keyed = tuple(Workload(name=name, key=name, source="reference") for name in ("small", "large"))
    several = stitched_files(TARGET.model_copy(update={"workloads": keyed}), "compile", (), {}, {})
    assert json.loads(several["plan.json"])["workloads"] == 2
    assert "lambda: get_inputs('large')," in several["reference_model.py"]
    assert "workloads" not in json.loads(stitched_files(TARGET, "compile", (), {}, {})["plan.json"])
