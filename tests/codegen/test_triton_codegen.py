"""The playbook on a GPU: its cards, its generated Triton, run in the interpreter and compiled for Hopper."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from agentforge.agents.playbook.coder import PlaybookCoder
from agentforge.agents.playbook.triton import TRITON_KERNEL
from agentforge.codegen.library import kernel_templates
from agentforge.codegen.triton.kernels import Blocks
from agentforge.codegen.triton.program import generate_triton
from agentforge.knowledge import load_folder
from agentforge.languages import run_command
from agentforge.languages.triton.compile.ahead import AheadOfTime
from agentforge.languages.triton.language import triton_version
from agentforge.languages.triton.launches import parse_launches
from agentforge.resources import resource
from agentforge.schema import CannotCode, Plan, Strategy
from agentforge.testing.language import make_solution

from .compiled import problem
from .triton_cases import CASES, REGIONS, Region, gpu_task, written

ROOT = Path(__file__).parents[2]
SLOW = {
    "gemm epilogues", "image norms", "norms", "masked softmax", "losses", "reductions", "pooling",
    "pooling at borders", "rotary", "types", "views", "few long rows",
}  # fmt: skip
"""Take Triton's interpreter seconds each."""

needs_triton = pytest.mark.skipif(not triton_version(), reason="Triton is not installed")


def run(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.codegen.triton_child", *names],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    return {entry["case"]: entry for entry in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def quick() -> dict[str, dict[str, Any]]:
    return run([*(n for n in CASES if n not in SLOW), *REGIONS])


@pytest.fixture(scope="module")
def long() -> dict[str, dict[str, Any]]:
    return run(sorted(SLOW))


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize("name", [n for n in CASES if n not in SLOW])
def test_generated_kernels_are_right(quick: dict[str, dict[str, Any]], name: str) -> None:
    assert "raised" not in quick[name], quick[name]["raised"]


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize("name", sorted(SLOW))
def test_more_generated_kernels_are_right(long: dict[str, dict[str, Any]], name: str) -> None:
    assert "raised" not in long[name], long[name]["raised"]


@needs_triton
@pytest.mark.parametrize("name", REGIONS)
def test_on_a_gpu_the_playbook_proposes_triton(quick: dict[str, dict[str, Any]], name: str) -> None:
    found = quick[name]
    assert "raised" not in found, found["raised"]
    assert found["language"] == "triton"
    assert found["author"] == "playbook"
    assert REGIONS[name].card in found["offered"]


def test_cards_have_the_tuning_spaces_of_their_kernels() -> None:
    cards = load_folder(resource("knowledge_base", "playbook")).values()
    brought = [c for c in cards if isinstance(c, Strategy) and c.template.startswith(TRITON_KERNEL)]
    assert len(brought) == 7
    for card in brought:
        kernel = kernel_templates()[card.template.removeprefix(TRITON_KERNEL)]
        assert dict(card.parameters) == kernel.parameters, card.id
        assert card.devices == ("cuda",)


@pytest.mark.parametrize(
    ("region", "kernel", "reason"),
    [
        ("pointwise", "softmax", "no operator here that the kernel softmax computes"),
        ("pointwise", "flash-attention", "no operator here"),
        ("pointwise", "fused-mlp", "no operator here"),
        ("rmsnorm spelled out", "rmsnorm", "no operator here"),
    ],
)
def test_refusals_name_the_reason(region: str, kernel: str, reason: str) -> None:
    task = gpu_task(REGIONS[region], "sqlite://")
    with pytest.raises(CannotCode, match=reason):
        PlaybookCoder().code(task, Plan(strategy="try", template=TRITON_KERNEL + kernel), None)


@pytest.mark.parametrize("heads", [((4, 16), (1, 16), (1, 16)), ((2, 16), (2, 16), (2, 8)), ((1, 264),) * 3])
def test_attention_of_other_heads_is_refused(heads: Sequence[tuple[int, int]]) -> None:
    body = (
        "return aten.matmul.default(aten.softmax.int(aten.matmul.default(\n"
        "    x0, aten.transpose.int(x1, -2, -1)), -1), x2)"
    )
    inputs = [torch.randn(1, count, 9, size) for count, size in heads]
    task = gpu_task(Region("attention", "triton-flash-attention", body, inputs), "sqlite://")
    with pytest.raises(CannotCode, match="with the same heads"):
        PlaybookCoder().code(task, Plan(strategy="try", template=TRITON_KERNEL + "flash-attention"), None)


@pytest.mark.parametrize("product", ["linear.default(x0, x1, x2)", "addmm.default(x2, x0, x1.t())"])
def test_an_activation_is_computed_in_the_epilogue_of_its_product(product: str) -> None:
    inputs = [torch.randn(18, 24), torch.randn(20, 24), torch.randn(20)]
    region = Region("gemm_epilogue", "", f"return aten.gelu.default(aten.{product})", inputs)
    plan = Plan(strategy="try", template=TRITON_KERNEL + "matmul")
    solution = PlaybookCoder().code(gpu_task(region, "sqlite://"), plan, None).solution
    forward = solution.source("model_new.py").rpartition("class ModelNew")[2]
    assert forward.count("matmul(") == 1 and "'gelu'" in forward
    assert "gelu.default" not in forward


def test_a_kernel_that_we_bring_is_put_in_for_one_workload() -> None:
    task = gpu_task(REGIONS["softmax"], "sqlite://")
    bottleneck = task.bottleneck.model_copy(update={"workloads": task.bottleneck.workloads * 2})
    with pytest.raises(CannotCode, match="one workload"):
        PlaybookCoder().code(
            replace(task, bottleneck=bottleneck),
            Plan(strategy="triton-softmax", template="kernels/triton/softmax"),
            None,
        )


def test_a_region_that_waits_for_the_host_is_offered_as_a_graph() -> None:
    region = REGIONS["pointwise"]
    assert "cuda-graph" in [s.id for s in gpu_task(region, "sqlite://").strategies]
    task = gpu_task(region, "sqlite://")
    solution = PlaybookCoder().code(task, Plan(strategy="cuda-graph", template="cuda-graph"), None).solution
    assert solution.spec.language == "python"
    scope: dict[str, Any] = {}
    exec(solution.sources[0].content, scope)
    got = scope["ModelNew"]()(*region.inputs)
    assert torch.equal(got, scope["Model"]()(*region.inputs)), "without a GPU it is the reference"


def _graph_model(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any], list[bool]]:
    """A model that replays graphs, what was captured for it, and whether a caller captures one now."""
    task = gpu_task(REGIONS["pointwise"], "sqlite://")
    solution = PlaybookCoder().code(task, Plan(strategy="cuda-graph", template="cuda-graph"), None).solution
    scope: dict[str, Any] = {}
    exec(solution.sources[0].content, scope)
    captured: list[Any] = []
    capturing = [False]

    def capture(self: Any, inputs: tuple[torch.Tensor, ...]) -> Any:
        captured.append(inputs)
        places = [x.clone() for x in inputs]
        results = scope["Model"].forward(self, *places)
        replay = lambda: results.copy_(scope["Model"].forward(self, *places))  # noqa: E731
        return places, SimpleNamespace(replay=replay), results

    scope["ModelNew"]._captured = capture
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    return scope["ModelNew"](), captured, capturing


def test_a_graph_model_keeps_few_graphs_and_one_for_each_device(monkeypatch: pytest.MonkeyPatch) -> None:
    model, captured, _ = _graph_model(monkeypatch)
    for _ in range(2):
        for where in ("cpu", "meta"):
            assert model(*(torch.randn(4, device=where) for _ in range(3))).device.type == where
    assert len(captured) == 2
    for size in range(20, 40):
        x, y, z = (torch.randn(size) for _ in range(3))
        assert torch.equal(model(x, y, z), torch.nn.functional.silu(x) * y + z)
    assert len(model._graphs) == 8


def test_a_graph_model_is_part_of_its_callers_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    model, captured, capturing = _graph_model(monkeypatch)
    capturing[0] = True
    x, y, z = (torch.randn(4) for _ in range(3))
    assert torch.equal(model(x, y, z), torch.nn.functional.silu(x) * y + z)
    assert not captured


def test_a_region_that_takes_a_list_is_no_graph() -> None:
    task = gpu_task(REGIONS["pointwise"], "sqlite://")
    (workload,) = task.bottleneck.workloads
    first, *rest = workload.inputs
    nested = workload.model_copy(update={"inputs": (first.model_copy(update={"name": "x0.0"}), *rest)})
    bottleneck = task.bottleneck.model_copy(update={"workloads": (nested,)})
    with pytest.raises(CannotCode, match="a list, tuple or dict"):
        PlaybookCoder().code(
            replace(task, bottleneck=bottleneck), Plan(strategy="cuda-graph", template="cuda-graph"), None
        )


@pytest.mark.parametrize("wrong", [{"block": 1000}, {"max_block": 0}, {"lanes": 3}, {"num_warps": 5}])
def test_sizes_are_powers_of_two(wrong: dict[str, int]) -> None:
    with pytest.raises(CannotCode, match="power of two"):
        Blocks(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "warps"), [(64, 1), (512, 4), (4096, 4), (16384, 16), (65536, 32)])
def test_a_thread_has_neither_too_few_elements_nor_too_many(size: int, warps: int) -> None:
    assert Blocks().warps(size) == warps


@pytest.mark.slow
@needs_triton
def test_a_norm_that_is_spelled_out_compiles_for_hopper(tmp_path: Path) -> None:
    definition, inputs, files, _ = written("rmsnorm spelled out")
    source = files[0].content
    assert source.count("@triton.jit\ndef kernel") == 1, "one kernel"
    assert source.count("tl.load(in0") == 1, "a row is read once"
    solution = make_solution("triton", {f.path: f.content for f in files}, definition=definition.hash)
    (tmp_path / "model_new.py").write_text(source)
    launch = {
        "kernel": "kernel0",
        "types": dict.fromkeys(("in0", "in1", "in2", "t3", "t4"), "*fp32"),
        "aligned": ["in0", "in1", "in2", "t3", "t4"],
        "num_warps": 4,
    }
    ahead = AheadOfTime(solution, tmp_path, ("sm_90",), tmp_path / "cache", run_command, triton_version())
    outcome = ahead.compile(parse_launches([launch]), 120)
    assert outcome.ok, outcome.diagnostics
    assert [r.spill_store_bytes for r in outcome.resources] == [0]
    assert len(inputs) == 3


@pytest.mark.parametrize(("elements", "kind"), [(2**31 - 100, "int64"), (2**31 - 2**20, "int32")])
def test_positions_beyond_the_last_element_fit_their_type(elements: int, kind: str) -> None:
    definition, workload = problem("return x0 * 2.0", [torch.empty(elements, device="meta")])
    text = generate_triton(definition, (workload,), Blocks())[0].content
    assert f"program = tl.program_id(0).to(tl.{kind})" in text


@pytest.mark.parametrize(
    ("body", "shape", "line"),
    [
        ("return x0.sum(0)", (70_000, 40_000), "c0_0 = (column).to(tl.int64)"),
        ("return x0.softmax(-1)", (300_000, 8_000), "at0 = (tl.arange(0, 8192)).to(tl.int64)"),
        ("return x0.softmax(-1)", (300, 8_000_000), "at = start + (tl.arange(0, 1024)).to(tl.int64)"),
        ("return x0.sum()", (3 << 30,), "at = start + (tl.arange(0, 1024)).to(tl.int64)"),
    ],
)
def test_positions_in_reductions_have_64_bits_if_addresses_need_them(
    body: str, shape: tuple[int, ...], line: str
) -> None:
    definition, workload = problem(body, [torch.empty(shape, device="meta")])
    text = generate_triton(definition, (workload,), Blocks())[0].content
    assert line in text


@pytest.mark.parametrize(
    ("body", "shape", "line"),
    [
        ("return x0.sum()", (2**31 - 600,), "range(chunk * 1024, tl.cast(2147483048, tl.int64), 524288):"),
        ("return x0.sum()", (2**31 - 2**19,), "range(chunk * 1024, 2146959360, 524288):"),
        ("return x0.softmax(-1)", (600, 2**31 - 600), "range(0, tl.cast(2147483048, tl.int64), 1024):"),
        ("return x0.sum(0)", (2**31, 40_000), "range(0, tl.cast(2147483648, tl.int64)):"),
        ("return x0.sum(0)", (2**31 - 1, 40_000), "range(0, 2147483647):"),
    ],
)
def test_counters_of_loops_do_not_wrap(body: str, shape: tuple[int, ...], line: str) -> None:
    definition, workload = problem(body, [torch.empty(shape, device="meta")])
    assert line in generate_triton(definition, (workload,), Blocks())[0].content


@pytest.mark.slow
@needs_triton
def test_a_loop_whose_counter_needs_64_bits_compiles(tmp_path: Path) -> None:
    definition, workload = problem("return x0.sum()", [torch.empty(2**31 - 600, device="meta")])
    files = generate_triton(definition, (workload,), Blocks())
    text = files[0].content
    (tmp_path / "model_new.py").write_text(text)
    launches = []
    for kernel, arguments in re.findall(r"@triton\.jit\ndef (kernel\w*)\(([^)]*)\)", text):
        names = arguments.replace(" ", "").split(",")
        launches.append({"kernel": kernel, "types": dict.fromkeys(names, "*fp32"), "aligned": names})
    assert {launch["kernel"] for launch in launches} >= {"kernel0_chunks", "kernel0"}
    solution = make_solution("triton", {"model_new.py": text}, definition=definition.hash)
    ahead = AheadOfTime(solution, tmp_path, ("sm_90",), tmp_path / "cache", run_command, triton_version())
    outcome = ahead.compile(parse_launches(launches), 120)
    assert outcome.ok and not outcome.diagnostics, outcome.diagnostics


def test_a_kernel_that_we_bring_takes_no_dimension_beyond_its_counters() -> None:
    row = torch.empty(2**31 - 9, device="meta")
    region = Region("softmax", "triton-softmax", "return x0.softmax(-1)", [row])
    with pytest.raises(CannotCode, match="32-bit counters"):
        PlaybookCoder().code(
            gpu_task(region, "sqlite://"), Plan(strategy="try", template="kernels/triton/softmax"), None
        )


def test_an_index_out_of_bounds_reads_the_first_element_and_is_asserted() -> None:
    inputs = [torch.randn(50, 16), torch.randint(0, 50, (3, 7))]
    for body, low in (("return F.embedding(x1, x0) * 2", 0), ("return x0[x1] * 2", -50)):
        definition, workload = problem(body, inputs)
        text = generate_triton(definition, (workload,), Blocks())[0].content
        valid = rf"\((v\d+) >= {low}\) & \(\1 < 50\)"
        assert re.search(rf"tl\.device_assert\({valid}, 'an index is out of bounds', mask=inside\)", text)
        assert re.search(rf"= tl\.where\({valid}, .*, 0\)\n", text)
