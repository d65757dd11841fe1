"""Variants are made in a child process; what does not fit is refused with its reason."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from agentforge.isolation.child_process import ChildFailure
from agentforge.problems.kernelbench import load_problem
from agentforge.profiling.graph.extract import extract
from agentforge.profiling.graph.operators import Kind, kind_of
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from agentforge.referee.candidates.jit_cache import calls_compiler
from agentforge.schema import (
    Bottleneck,
    CallSite,
    Definition,
    Evaluation,
    KernelUse,
    Profile,
    TargetError,
    TimeEnded,
    Workload,
)
from agentforge.stitch.files import Mode, as_solution, stitched_files
from agentforge.stitch.proof import engagement
from agentforge.stitch.runtime.branches import STREAMS
from agentforge.stitch.runtime.graph import REPLAY
from agentforge.stitch.variants import Variant, VariantBuilder, promoted
from tests.profiling.captured import capture_units

from .making import BLOCK, TOWERS, from_reference, import_folder, rms_kernel, target_of

NORM = Definition(
    name="norm", op_type="norm", reference="class Model(x): # rsqrt\n    def forward(self, x, weight): ..."
)
OTHER = Definition(name="other", op_type="pointwise", reference="class Model(x): ...")


def profile(*bottlenecks: tuple[Definition, list[dict[str, Any]]]) -> Profile:
    made = tuple(
        Bottleneck(
            definition=definition,
            workloads=(Workload(name="w"),),
            call_sites=tuple(CallSite(operators=(), time_s=1.0, **site) for site in sites),
            time_s=1.0,
            share=0.5,
            sol_s=0.1,
            bound="memory",
            gain_s=0.5,
            speedup_limit=2.0,
        )
        for definition, sites in bottlenecks
    )
    return Profile(
        target="t",
        device="cpu",
        architecture="a",
        total_s=1.0,
        traces=1,
        attributed=1.0,
        call_sites=tuple(s for b in made for s in b.call_sites),
        bottlenecks=made,
    )


@pytest.fixture(scope="module")
def norm_sites() -> list[dict[str, Any]]:
    problem = load_problem(target_of(BLOCK).definition)
    (unit,) = capture_units(problem.build(0), *problem.inputs(0)).units
    norms = [r for r in partition(unit.graph_module.graph) if r.op_type == "norm"]
    return [
        {"name": f"norm{i}", "nodes": tuple(n.name for n in region.nodes)} for i, region in enumerate(norms)
    ]


@pytest.mark.slow
def test_sites_are_found_again_by_name(norm_sites: list[dict[str, Any]]) -> None:
    lost = {"name": "lost", "nodes": ("no_such_node",)}
    elsewhere = {"name": "elsewhere", "unit": "down", "nodes": ("linear",)}
    overlapping = {"name": "overlapping", "nodes": norm_sites[0]["nodes"][:1]}
    norm_kernel = rms_kernel(NORM)
    assert norm_kernel is not None
    kernels = promoted(
        profile((NORM, [*norm_sites, lost, elsewhere]), (OTHER, [overlapping])),
        {NORM.hash: norm_kernel, OTHER.hash: from_reference(OTHER)},
    )
    variants = VariantBuilder(target_of(BLOCK), kernels)
    variant = variants.with_kernels(list(kernels), "kernels")
    assert variant is not None
    (name,) = variant.kernels
    assert variant.expected == {name: 2}
    assert set(variant.sites) == {"norm0", "norm1"}
    assert "no_such_node" in variants.refused["lost"]
    assert "not captured" in variants.refused["elsewhere"]
    assert "another kernel" in variants.refused["overlapping"]
    paths = {s.path for s in variant.solution.sources}
    assert {"plan.json", "model_new.py", f"kernels/{name}/kernel.cpp"} <= paths
    compiled = variants.compiled()
    assert not compiled.kernels
    smaller = variants.with_kernels([n for n in kernels if n != name], "kernels")
    assert smaller is not None
    assert set(smaller.sites) == {"overlapping"}
    assert variants.with_kernels([], "kernels") is None


@pytest.mark.slow
def test_engagement_needs_the_kernel_and_its_compiled_code(norm_sites: list[dict[str, Any]]) -> None:
    norm_kernel = rms_kernel(NORM)
    assert norm_kernel is not None
    kernels = promoted(profile((NORM, norm_sites)), {NORM.hash: norm_kernel})
    variant = VariantBuilder(target_of(BLOCK), kernels).with_kernels(list(kernels), "kernels")
    assert variant is not None
    (name,) = kernels

    def problems(**runs: int) -> list[str]:
        uses = tuple(KernelUse(name=k, own=True, calls=n) for k, n in runs.items())
        evaluation = Evaluation.model_construct(kernels=uses)
        return engagement(variant, evaluation, {name: norm_kernel})

    assert problems(**{name: 2, "rms": 2}) == []
    assert "0 times" in problems()[0]
    assert "1 times in one forward, not 2" in problems(**{name: 1, "rms": 1})[0]
    assert "none of its compiled functions" in problems(**{name: 2})[0]


@pytest.mark.slow
def test_a_model_without_kernels_in_a_cuda_graph_needs_replays_as_proof() -> None:
    variant = VariantBuilder(target_of(BLOCK), {}).with_kernels([], "kernels+graph")
    assert variant is not None
    assert (variant.label, variant.kernels) == ("the model in a CUDA graph", frozenset())
    assert any(source.path == "units/unit0.py" for source in variant.solution.sources)

    def problems(replays: int) -> list[str]:
        uses = (KernelUse(name=REPLAY, own=True, calls=replays),)
        return engagement(variant, Evaluation.model_construct(kernels=uses), {})

    assert problems(1) == []
    assert problems(0) == ["a CUDA graph ran 0 times in one forward, not 1"]


@pytest.mark.slow
def test_several_streams_are_tried_where_the_measured_times_promise_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = target_of(TOWERS)
    problem = load_problem(target.definition)
    (unit,) = capture_units(problem.build(0), *problem.inputs(0)).units
    nodes = [node.name for node in unit.graph_module.graph.nodes if kind_of(node) is Kind.GEMM]
    sites = [{"unit": "", "nodes": [name], "time_s": 1e-4, "fill": 0.1} for name in nodes]
    variants = VariantBuilder(target, {}, measured=sites)

    def with_(mode: Mode) -> tuple[str, dict[str, int], bool]:
        made = variants.with_kernels([], mode)
        assert made is not None
        (text,) = (s.content for s in made.solution.sources if s.path == "units/unit0.py")
        return made.label, dict(made.expected), "_on_stream(1, [0])" in text

    assert with_("kernels+graph") == ("the model in a CUDA graph", {REPLAY: 1}, False)
    label = "the model in a CUDA graph on several streams"
    assert with_("kernels+graph+streams") == (label, {REPLAY: 1, STREAMS: 1}, True)
    assert with_("kernels+streams") == ("the model on several streams", {STREAMS: 1}, True)
    monkeypatch.setattr("agentforge.stitch.variants.WORTH_TRYING", 0.9)
    assert variants.with_kernels([], "kernels+streams") is None


def test_a_model_that_does_not_load_any_more_is_said_so() -> None:
    broken = target_of("raise RuntimeError('gone')")
    with pytest.raises(TargetError, match="gone"):
        VariantBuilder(broken, {}).compiled()


def test_the_end_of_the_time_for_stitching_ends_a_rewriting() -> None:
    slow = target_of("import time\ntime.sleep(60)")
    with pytest.raises(TimeEnded):
        VariantBuilder(slow, {}, end=time.monotonic() + 1.0).compiled()
    with pytest.raises(TimeEnded):
        VariantBuilder(slow, {}).with_solutions({}, time.monotonic()).compiled()


def test_what_goes_wrong_within_the_exporter_is_said_in_one_plain_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        detail = "torch._dynamo met a FakeTensor\nand more"
        raise ChildFailure("raised", f"InternalError: {detail}", error_type="InternalError", detail=detail)

    monkeypatch.setattr("agentforge.stitch.variants.run_child", fail)
    with pytest.raises(TargetError) as failed:
        VariantBuilder(target_of(BLOCK), {}).compiled()
    assert "for stitching: InternalError: no simpler reason is known; if its file" in str(failed.value)


def written(variant: Variant, folder: Path) -> ModuleType:
    """A variant's files as a package."""
    for file in variant.solution.sources:
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(file.content)
    return import_folder(folder)


TWO = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 16)

    def forward(self, x):
        return torch.relu(self.up(x)).sin() * 2.0


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = Block(), Block()

    def forward(self, x):
        y = self.left(x)
        if y.sum() > 1e9:
            y = y * 2.0
        return self.right(y)


def get_inputs():
    return [torch.randn(4, 16)]


def get_init_inputs():
    return []
"""


@pytest.mark.slow
def test_one_unit_is_compiled_and_the_other_runs_as_it_is(tmp_path: Path) -> None:
    target = target_of(TWO)
    problem = load_problem(target.definition)
    left = next(u for u in capture_units(problem.build(0), *problem.inputs(0)).units if u.name == "left")
    (region,) = (r for r in partition(left.graph_module.graph) if r.op_type == "pointwise")
    definition = extract(region, record(left, {*region.inputs, *region.outputs})).definition
    site = {"name": "site", "unit": "left", "nodes": tuple(n.name for n in region.nodes)}
    kernels = promoted(profile((definition, [site])), {definition.hash: from_reference(definition)})
    variants = VariantBuilder(target, kernels)
    every = variants.with_kernels(list(kernels), "kernels+compile")
    assert every is not None
    assert every.compiled == ("left", "right")
    variant = variants.with_kernels(list(kernels), "kernels+compile", eager=["left"])
    assert variant is not None
    assert (variant.compiled, variant.eager) == (("right",), ("left",))
    assert variant.label == "1 kernel ('left' eager) under torch.compile"
    frozen = variants.with_kernels(list(kernels), "kernels+compile", eager=["left"], way="freezing")
    assert frozen is not None
    assert (frozen.compiled, frozen.eager, frozen.way) == (("right",), ("left",), "freezing")
    assert frozen.label == "1 kernel ('left' eager) under torch.compile (freezing)"
    assert frozen.solution.hash != variant.solution.hash
    package = written(variant, tmp_path / "two")
    scope: dict[str, Any] = {}
    exec(TWO, scope)
    model, original = (scope["Model"]().eval() for _ in range(2))
    original.load_state_dict(model.state_dict())
    package.optimize(model)
    x = torch.randn(4, 16)
    torch._dynamo.reset()
    counters.clear()
    with torch.inference_mode():
        torch.testing.assert_close(model(x), original(x))
    assert counters["stats"]["unique_graphs"] == 1
    assert package.calls() == dict.fromkeys(kernels, 1)


PYRAMID = """
import torch
from torch import nn


class Head(nn.Module):
    def forward(self, x, scale=1.0):
        return torch.relu(x).sin() * scale


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = Head()

    def forward(self, x):
        if x.sum() > 1e9:
            x = x * 2.0
        calls = [self.head(level) for level in (x, x[:, ::2], x[:, ::4])]
        calls += [self.head(x=x, scale=1.0), self.head(x, 2.0)]
        return sum(output.sum() for output in calls)


def get_inputs():
    return [torch.randn(4, 16)]


def get_init_inputs():
    return []
"""


@pytest.mark.slow
def test_a_module_that_is_called_with_several_shapes_gets_its_kernel_for_the_first(tmp_path: Path) -> None:
    target = target_of(PYRAMID)
    problem = load_problem(target.definition)
    (head,) = capture_units(problem.build(0), *problem.inputs(0)).units
    region = next(r for r in partition(head.graph_module.graph) if r.op_type == "pointwise")
    definition = extract(region, record(head, {*region.inputs, *region.outputs})).definition
    site = {"name": "site", "unit": "head", "nodes": tuple(n.name for n in region.nodes)}
    kernels = promoted(profile((definition, [site])), {definition.hash: from_reference(definition)})
    builder = VariantBuilder(target, kernels)
    variant = builder.with_kernels(list(kernels), "kernels")
    assert variant is not None
    assert variant.expected == dict.fromkeys(kernels, 2)
    assert any(note.endswith("3 of 5 of head") for note in builder.notes)
    package = written(variant, tmp_path / "pyramid")
    model, original = problem.build(0), problem.build(0)
    package.optimize(model)
    x = torch.randn(4, 16)
    with torch.inference_mode():
        torch.testing.assert_close(model(x), original(x))
    assert package.calls() == variant.expected


SPARSE = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.eye(8).to_sparse_csr())
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        return self.norm((self.weight @ x.T).T)


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return []
"""


def test_a_module_with_a_sparse_buffer_stays_as_it_is() -> None:
    builder = VariantBuilder(target_of(SPARSE), {})
    assert builder.with_kernels((), "kernels+packed") is None
    assert "sparse" not in str(builder.notes) and builder.eager().mode == "eager"
    assert builder.compiled("compile").mode == "compile"


OF_A_DICT = """
from collections import OrderedDict

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(x["a"])


def get_inputs():
    return [OrderedDict(a=torch.randn(4, 8))]


def get_init_inputs():
    return []
"""
HOOKED = OF_A_DICT.replace("OrderedDict(a=torch.randn(4, 8))", "torch.randn(4, 8)")
HOOKED = HOOKED.replace('self.norm(x["a"])', "self.norm(x)").replace(
    "LayerNorm(8)\n", "LayerNorm(8)\n        self.norm.register_forward_hook(lambda norm, x, y: 2 * y)\n"
)


@pytest.mark.parametrize("source", [OF_A_DICT, HOOKED])
def test_torch_compile_needs_no_description_of_the_call(source: str, tmp_path: Path) -> None:
    target = target_of(source)
    variant = VariantBuilder(target, {}).compiled()
    assert variant.mode == "compile"
    package = written(variant, tmp_path / "compiled")
    problem = load_problem(target.definition)
    model, original = problem.build(0), problem.build(0)
    package.optimize(model)
    assert model._compiled_call_impl is not None
    args, _ = problem.inputs(1)
    with torch.inference_mode(), torch.compiler.set_stance("force_eager"):
        torch.testing.assert_close(model(*args), original(*args))


LAZY = OF_A_DICT.replace("torch.nn.LayerNorm(8)", "torch.nn.LazyLinear(8)")


def test_for_torch_compile_alone_the_model_is_described_once_and_not_exported(tmp_path: Path) -> None:
    said: list[str] = []
    variants = VariantBuilder(target_of(LAZY), {}, said.append)
    plans = [
        next(source.content for source in variants.compiled(mode).solution.sources if "plan" in source.path)
        for mode in ("compile", "compile+freezing")
    ]
    assert said == []
    norm = json.loads(plans[0])["units"][0]["modules"][0]
    assert norm["class"] == "Linear"  # as it is after the first call
    assert json.loads(plans[0])["units"] == json.loads(plans[1])["units"]


def test_the_model_is_loaded_once_for_all_modes_of_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def answers(_: str, payload: Any, **__: Any) -> dict[str, Any]:
        asked.append(payload["selections"])
        return {"outline": {"calls": {}, "unit": "", "products": []}, "calls": {}, "notes": [],
                "selections": [], "fewer": []}  # fmt: skip

    monkeypatch.setattr("agentforge.stitch.variants.run_child", answers)
    variants = VariantBuilder(target_of(BLOCK), {})
    for mode in ("compile", "compile+freezing", "compile"):
        variants.compiled(mode)
    assert asked == [[]]


@pytest.mark.parametrize(
    ("mode", "calls"), [("kernels", False), ("kernels+compile", True), ("compile+freezing", True)]
)
def test_a_stitched_model_calls_the_compiler_if_its_mode_does(mode: Mode, calls: bool) -> None:
    target = target_of("class Model: ...")
    files = stitched_files(target, mode, [], {}, {})
    assert calls_compiler(as_solution(target, mode, files)) is calls
