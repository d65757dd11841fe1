"""From a profile and a hand-written kernel to an artifact that the referee verified."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec, Roofline
from agentforge.problems.reference_solution import reference_solution
from agentforge.profiling import profile_target
from agentforge.profiling.measure.device import HOST
from agentforge.referee import Referee
from agentforge.schema import CallSite, Profile, Solution, Target
from agentforge.stitch import stitch
from agentforge.stitch.stitch import _waits
from agentforge.testing.language import make_solution
from tests.steady import SteadyReferee

from .making import RMS_CPP, RMS_PY, import_folder, same, target_of

NORMS = '''
import torch
import torch.nn as nn


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Model(nn.Module):
    """Two norms that dominate."""

    def __init__(self):
        super().__init__()
        self.first, self.last = Norm(256), Norm(256)
        self.proj = nn.Linear(256, 256, bias=False)

    def forward(self, x):
        return self.last(self.proj(self.first(x)))


def get_inputs():
    return [torch.randn(4096, 256)]


def get_init_inputs():
    return []
'''

FAST_CPP = RMS_CPP.replace("    for (int64_t r = 0;", "#pragma omp parallel for\n    for (int64_t r = 0;")
WRONG_CPP = FAST_CPP.replace("1e-6f", "0.5f")
SLOW_LOOP = "for (int again = 0; again < 40; again++)"
SLOW_CPP = RMS_CPP.replace("for (int64_t r = 0;", f"{SLOW_LOOP} for (int64_t r = 0;")
DEVICE = DeviceSpec(kind="cpu", name="test", architecture="x86-64", threads=2)


def kernel(definition: str, source: str) -> Solution:
    return make_solution("cpp", {"model_new.py": RMS_PY, "kernel.cpp": source}, definition=definition)


@pytest.mark.parametrize(
    ("host_s", "lost", "tried"),
    [
        (0.5, (), True),
        (0.05, (), False),
        (0.0, ("no-kernel-times",), True),
        (0.5, ("no-graphs",), False),
        (0.0, ("no-kernel-times", "no-graphs"), False),
    ],
)
def test_a_graph_is_tried_unless_the_gpu_is_known_to_be_busy(
    host_s: float, lost: tuple[str, ...], tried: bool
) -> None:
    site = CallSite(name=HOST, nodes=(), operators=(), time_s=host_s)
    profile = Profile.model_construct(total_s=1.0, call_sites=(site,))
    gpu = DeviceSpec(kind="cuda", name="a GPU", architecture="sm_90", fallbacks=lost)
    assert _waits(profile, gpu) == tried


@pytest.fixture(scope="module")
def target() -> Target:
    return target_of(NORMS, "norms")


@pytest.fixture(scope="module")
def profile(target: Target) -> Profile:
    roofline = Roofline(bandwidth=2e10, peak_flops={"float32": 1e11})
    return profile_target(target, DEVICE, roofline, traces=2)


@pytest.fixture(scope="module")
def referee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SteadyReferee]:
    settings = RefereeSettings(
        threads=2, quick_seconds=0.2, quick_blocks=2, compile_baseline=False, task_seconds=0
    )
    with Referee(settings, device=DEVICE, cache=tmp_path_factory.mktemp("cache")) as real:
        yield SteadyReferee(real, lambda solution: 0.5 if SLOW_LOOP in str(solution.sources) else 2.0)


def kernels(profile: Profile, source: str) -> dict[str, Solution]:
    """The kernel for each definition that is an RMSNorm."""
    regions = [b.definition for b in profile.bottlenecks]
    norms = [d.hash for d in regions if "rsqrt" in d.reference]
    return {norm: kernel(norm, source) for norm in norms}


@pytest.mark.slow
def test_a_fast_kernel_is_put_in_and_proven(
    target: Target, profile: Profile, referee: SteadyReferee, tmp_path: Path
) -> None:
    lines: list[str] = []
    artifact = stitch(
        target,
        profile,
        kernels(profile, FAST_CPP),
        tmp_path / "fast",
        referee=referee,
        device=DEVICE,
        cache=tmp_path / "cache",
        progress=lines.append,
    )
    assert artifact.proven, (artifact.summary, lines)
    assert artifact.mode == "kernels"
    assert artifact.evaluation is not None
    assert artifact.evaluation.performance is not None
    assert artifact.evaluation.performance.speedup["eager"].low > 1.0
    report = json.loads((tmp_path / "fast" / "report.json").read_text())
    assert sum(used["runs_expected"] for used in report["kernels"]) == 2
    assert all(used["runs_seen"] == used["runs_expected"] for used in report["kernels"])
    package = import_folder(tmp_path / "fast")
    model = package.reference_model = import_reference(tmp_path / "fast")
    x = torch.randn(4096, 256)
    with torch.inference_mode():
        expected = model(x)
        assert same(package.optimize(model)(x), expected, 1e-4)
    assert sum(package.calls().values()) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("no_slow_parts")
def test_a_merge_of_a_product_and_a_norm_is_integrated_and_proven(
    target: Target, profile: Profile, referee: SteadyReferee, tmp_path: Path
) -> None:
    (merge,) = profile.merges
    assert next(str(o).split(".")[1] for o in merge.call_sites[0].operators) == "linear"
    solution = reference_solution(merge.definition)
    artifact = stitch(
        target,
        profile.merged([merge.definition.hash]),
        {merge.definition.hash: solution},
        tmp_path / "merged",
        referee=referee,
        device=DEVICE,
        cache=tmp_path / "cache",
    )
    assert artifact.proven, artifact.summary
    package = import_folder(tmp_path / "merged")
    model = import_reference(tmp_path / "merged")
    x = torch.randn(4096, 256)
    with torch.inference_mode():
        expected = model(x)
        assert same(package.optimize(model)(x), expected, 1e-4)
    assert sum(package.calls().values()) == 1


def import_reference(folder: Path) -> torch.nn.Module:
    scope: dict[str, type] = {}
    exec((folder / "reference_model.py").read_text(), scope)
    return scope["Model"]().eval()


@pytest.mark.slow
@pytest.mark.usefixtures("no_slow_parts")
def test_a_wrong_kernel_is_not_put_in(
    target: Target, profile: Profile, referee: SteadyReferee, tmp_path: Path
) -> None:
    artifact = stitch(
        target,
        profile,
        kernels(profile, WRONG_CPP),
        tmp_path / "out",
        referee=referee,
        device=DEVICE,
        cache=tmp_path / "cache",
    )
    assert artifact.kernels == ()
    # What is left to gain is the product between the norms.
    assert artifact.mode == "kernels+packed"
    assert len(artifact.report["packed"]) == 1
    original, optimized = (import_reference(tmp_path / "out") for _ in range(2))
    optimized = import_folder(tmp_path / "out").optimize(optimized)
    optimized.load_state_dict(original.state_dict())
    x = torch.randn(4096, 256)
    with torch.inference_mode():
        assert same(optimized(x), original(x), 1e-4)


@pytest.mark.slow
def test_where_the_kernel_is_slow_torch_compile_is_kept(
    target: Target, profile: Profile, referee: SteadyReferee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentforge.stitch.select._MODES", ("kernels",))
    monkeypatch.setattr("agentforge.stitch.graph.products.WORTH_TRYING", 2.0)
    artifact = stitch(
        target,
        profile,
        kernels(profile, SLOW_CPP),
        tmp_path / "out",
        referee=referee,
        device=DEVICE,
        cache=tmp_path / "cache",
    )
    assert artifact.kernels == ()
    assert artifact.mode == "compile"
    model = import_reference(tmp_path / "out")
    original, package = type(model), import_folder(tmp_path / "out")
    fast = package.optimize(model)
    assert type(fast) is original  # no layer around what torch.compile made
    assert fast._compiled_call_impl is not None
    with pytest.raises(ValueError, match="an instance"):
        package.optimize(original)
