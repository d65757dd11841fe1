"""Generated kernels against torch, really compiled and run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentforge.codegen import Options, flags_of, generate
from agentforge.languages.cpp.shipped.agentforge_cpp import FLAGS
from agentforge.problems.kernelbench import load_problem
from agentforge.schema import CannotCode, Definition

from .compiled import build, check, compare, integers, load, problem

randn = torch.randn


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


torch.manual_seed(7)  # the same inputs, whatever was imported before
FAMILIES: dict[str, tuple[str, list[torch.Tensor]]] = {
    "norms": (
        "h = x0 + x3\n"
        "r = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * x1\n"
        "n = F.layer_norm(h, (67,), x1, x2)\n"
        "return h, n, r, F.softmax(h, -1), F.log_softmax(h, -1), F.normalize(h, dim=1)",
        [randn(13, 67), randn(67), randn(67), randn(13, 67)],
    ),
    "image norms": (
        "a = F.relu(F.group_norm(x0, 4, x1, x2) + x3)\n"
        "b = F.silu(F.batch_norm(x0, x1, x4, x2, x2))\n"
        "return a, b, F.instance_norm(x0)",
        [randn(3, 8, 5, 7), randn(8), randn(8), randn(3, 8, 5, 7), torch.rand(8) + 0.5],
    ),
    "masked softmax": (
        "causal = torch.ones(9, 17, dtype=torch.bool).tril(8)\n"
        "a = (x0 * 0.3 + x1).softmax(-1)\n"
        "b = (x0 * 0.3).masked_fill(x2, float('-inf')).softmax(-1)\n"
        "return a, b, x0.masked_fill(~causal, float('-inf')).softmax(-1), x0.softmax(1)",
        [randn(2, 3, 9, 17), randn(1, 1, 9, 17), torch.rand(9, 17) > 0.9],
    ),
    "losses": (
        "return (F.cross_entropy(x0, x1), F.cross_entropy(x0, x1, ignore_index=3, reduction='none'),\n"
        "    F.cross_entropy(x0, x1, label_smoothing=0.1), F.mse_loss(x0, x2), F.smooth_l1_loss(x0, x2),\n"
        "    F.cosine_similarity(x0, x2))",
        [randn(33, 57), integers(0, 57, 33), randn(33, 57)],
    ),
    "rotary": (
        "h = x0.shape[-1] // 2\n"
        "x = x0.transpose(1, 2)\n"
        "r = torch.cat((-x[..., h:], x[..., :h]), -1)\n"
        "e, o = x[..., ::2], x[..., 1::2]\n"
        "c, s = x1[:, :h], x2[:, :h]\n"
        "return x * x1 + r * x2, torch.stack((e * c - o * s, e * s + o * c), -1).flatten(-2)",
        [randn(2, 9, 3, 32), randn(9, 32), randn(9, 32)],
    ),
    "gates": (
        "a, b = x0.chunk(2, -1)\n"
        "return F.silu(a) * b, a * F.gelu(b, approximate='tanh'), F.gelu(x1) * x2",
        [randn(11, 26), randn(5, 31), randn(5, 31)],
    ),
    "padded rows": (
        "y = F.pad(torch.cat((x0, x1.tanh()), -1), (2, 3))\n"
        "return F.layer_norm(y.sin() * y.cos() + y, (y.shape[-1],)), y.softmax(-1), y.amax(-1)",
        [randn(7, 40), randn(7, 50)],
    ),
    "gemm epilogues": (
        "y = F.gelu(F.linear(x0, x1, x2)) + x3\n"
        "s = (y @ y.transpose(-1, -2) * 0.1).softmax(-1)\n"
        "return y, s @ y, torch.sigmoid(F.conv2d(x4, x5))",
        [randn(3, 11, 20), randn(24, 20), randn(24), randn(3, 11, 24), randn(1, 2, 9, 9), randn(4, 2, 3, 3)],
    ),
    "reductions": (
        "return (x0.sum(0), x0.mean((0, 2)), x0.amax(-1), x0.argmax(1), x0.argmin(), x0.max(-1)[1],\n"
        "    x0.var(1), x0.std(), x0.prod(-1), x0.norm(dim=1), x0.logsumexp(-1), (x0 > 3).any(-1),\n"
        "    x0.abs().sum())",
        [randn(5, 19, 23)],
    ),
    "pooling": (
        "return (F.relu(F.max_pool2d(x0, 3, 2, 1)), F.avg_pool2d(x0, 3, 2, 1), F.max_pool1d(x0[0], 4),\n"
        "    F.adaptive_avg_pool2d(x0, 1).flatten(1))",
        [randn(2, 3, 17, 24)],
    ),
    "pooling at borders": (
        "return (F.max_pool2d(x0, 3, 2, ceil_mode=True), F.max_pool2d(x0, 3, 2, 1, 2, ceil_mode=True),\n"
        "    F.avg_pool2d(x0, 3, 1, 1, count_include_pad=False), F.avg_pool2d(x0, 3, 2, 1, ceil_mode=True),\n"
        "    F.avg_pool2d(x0, (3, 2), 2, (1, 0), True, False), F.avg_pool1d(x0[0], 4, 3, 1, True))",
        [randn(2, 3, 16, 25)],
    ),
    "scans": (
        "return torch.cumprod(x0, -1) * 2, torch.logcumsumexp(x0, 0) + 1, x0.cumsum(1) * 2", [randn(9, 20)],
    ),
    "views": (
        "p = x0.permute(0, 2, 3, 1).reshape(2, 128, 3)\n"
        "return (p * 2, F.pad(x0, (1, 2, 3, 0)) + 1, x0.roll(2, 0) * 2, x0.flip(1) + 1, x0.tril(),\n"
        "    x0[:, 1:, ::3] - 1, x0.repeat(1, 2, 1, 1) + x1, x0.repeat_interleave(2, 1).softmax(-1),\n"
        "    F.embedding(x2, x3) * 2, x0.select(1, 2).unsqueeze(0).expand(3, -1, -1, -1) * 2)",
        [randn(2, 3, 8, 16), randn(()), integers(0, 50, 3, 7), randn(50, 16)],
    ),
    "types": (
        "return (F.silu(x0) * x0, F.layer_norm(x1, (40,)), F.gelu(x2).sum(-1), x3 * 2 + 1, x3 // 3, x3 % 5,\n"
        "    x3.sum(), (x2 > 0) & (x3 > 0), torch.where(x3 > 0, x2, -x2), x3.to(torch.int32) * 2,\n"
        "    x0.float() + x3)",
        [
            randn(6, 40).half(), randn(6, 40).bfloat16(), randn(6, 40, dtype=torch.float64),
            integers(-50, 50, 6, 40),
        ],
    ),
    "truth values": (
        "return (x0.amax(-1), x0.amin(0), *x0.max(-1), *x1.min(1), x0.max(), torch.maximum(x0, x1),\n"
        "    torch.minimum(x0, x1), (x0 ^ x1).any(1), x0.all(0))",
        [torch.rand(9, 40) > 0.5, torch.rand(9, 40) > 0.1],
    ),
    "layouts": (
        "return x0 * 2 + x1, x0 - x2, (x2 * x3).sum(-1)",
        [randn(33, 40).t(), randn(40, 66)[:, ::2], randn(40, 1).expand(40, 33), randn(33)],
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str, tmp_path: Path) -> None:
    body, inputs = FAMILIES[family]
    check(body, inputs, tmp_path)


@pytest.mark.slow
def test_activations_and_special_values(tmp_path: Path) -> None:
    inf, nan = float("inf"), float("nan")
    special = torch.tensor(
        [inf, -inf, nan, 0.0, -0.0, 1e-40, 88.5, 88.7, 89.0, -87.0, -100.0, -1.0, -2.0, 1e37]
    )
    x = torch.cat([randn(1000) * 3, randn(1000) * 30, special])
    body = (
        "return (x0.exp(), x0.expm1(), x0.tanh(), x0.erf(), x0.sigmoid(), F.gelu(x0), F.silu(x0), x0.log(),\n"
        "    x0.log1p(), x0.sqrt(), x0.rsqrt(), x0.sin(), x0.cos(), F.mish(x0), F.elu(x0), F.hardswish(x0),\n"
        "    F.softplus(x0), F.relu6(x0), F.leaky_relu(x0), x0.round(), x0.floor(),\n"
        "    x0.relu(), x0.amax(), x0.isnan())"
    )
    new, reference = build(body, [x], tmp_path)
    compare(new, reference, [x])


@pytest.mark.slow
def test_rows_with_infinities(tmp_path: Path) -> None:
    x = randn(7, 300)
    x[1] = float("-inf")
    x[2, :200] = float("-inf")
    x[3, 5] = float("nan")
    x[4, 6] = float("inf")
    check("return x0.softmax(-1), x0.log_softmax(-1), x0.amax(-1), x0.amin(-1)", [x], tmp_path / "plain")
    check("return x0.softmax(-1)", [x], tmp_path / "online", online=True, tile=64)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (7, 1)])
def test_values_of_a_row_are_written_once_if_maximum_and_sum_are_one_pass(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    body = "return (x0 * (x1 * 2)).softmax(-1)"
    check(body, [randn(7, 300), randn(shape)], tmp_path, online=True, tile=64)


KNOBS: list[dict[str, Any]] = [
    {"online": True, "tile": 64},
    {"nontemporal": "on", "stage": "all", "tile": 64, "prefetch": 512},
    {"math": "libm", "schedule": "dynamic", "accumulate": "float", "stage": "off", "grain": 1},
    {"split": "on", "lanes": 16, "fuse_bias": False, "inplace": False, "grain": 1, "math": "strict"},
]


@pytest.mark.slow
@pytest.mark.parametrize("knobs", KNOBS, ids=lambda k: "-".join(k))
def test_every_knob_computes_the_same(knobs: dict[str, Any], tmp_path: Path) -> None:
    body = (
        "y = F.gelu(F.linear(x0, x1, x2))\n"
        "return y, y.softmax(-1), F.layer_norm(y + x3, (4099,)), y.sum(0), y.sum(-1), F.cross_entropy(y, x4)"
    )
    inputs = [randn(5, 8), randn(4099, 8), randn(4099), randn(5, 4099), integers(0, 4099, 5)]
    check(body, inputs, tmp_path, **knobs)


SIZES = [1, 2, 3, 7, 16, 17, 31, 64, 67, 101]
STEPS = [
    "{} * 0.5",
    "{}.tanh()",
    "{} + b",
    "{} * c",
    "{}.sigmoid()",
    "{}.abs()",
    "-{}",
    "{} - {}.mean(-1, keepdim=True)",
]
ENDS = [
    "{}",
    "{}.sum(-1)",
    "{}.softmax(-1)",
    "{}.amax(0)",
    "{}.mean()",
    "{}.t() + 1",
    "torch.cat(({}, b.expand_as(x0)), 1)",
]


@pytest.mark.slow
@settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_graphs(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Several random chains over one random shape share a build."""
    rows, columns = data.draw(st.sampled_from(SIZES)), data.draw(st.sampled_from(SIZES))
    lines, ends = ["b, c = x1, x2"], []
    for chain in range(4):
        steps = data.draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=5))
        lines.append(f"v{chain} = x0")
        lines += [f"v{chain} = {step.replace('{}', f'v{chain}')}" for step in steps]
        ends.append(data.draw(st.sampled_from(ENDS)).replace("{}", f"v{chain}"))
    body = "\n".join([*lines, f"return {', '.join(ends)}"])
    inputs = [randn(rows, columns), randn(1, columns), randn(rows, 1)]
    check(body, inputs, tmp_path_factory.mktemp("graph"), magnitude=max(rows, columns))


@pytest.mark.slow
def test_large_tensors_take_parallel_forms(tmp_path: Path) -> None:
    body = "return x0.sum(), x0 / x0.norm(), x0.argmax(), x0.softmax(-1), F.gelu(x0 + x1) * 2, x0.mean(0)"
    check(body, [randn(517, 1031), randn(1031)], tmp_path)


@pytest.mark.parametrize(
    ("body", "inputs", "reason"),
    [
        ("return x0 if x0.sum() > 0 else -x0", [randn(3)], "traced"),
        ("return x0[x0 > 0]", [randn(3)], "DynamicOutputShape"),
        ("return torch.view_as_complex(x0) * 2", [randn(3, 2)], "aten.view_as_complex"),
        ("return x0.view(torch.int32) & 0x7fffffff", [randn(3)], "bits as another type"),
        ("return x0.round(decimals=40)", [randn(3)], "40 decimals"),
        ("return x0 @ x0", [randn(3, 3)], "no kernel"),
        ("return x0 * 2", [randn(0, 3)], "empty"),
        ("return x0[:, :0].sum(1)", [randn(4, 3)], "a tensor is empty"),
        ("return x0 + torch.ones(0).sum()", [randn(3)], "a tensor is empty"),
        ("return x0[:0] * 2, x0 + 1", [randn(4, 3)], "a tensor is empty"),
        ("x0.mul_(2)\nreturn x0", [randn(3)], "changes its inputs"),
        ("return x0 // x1", [integers(1, 9, 4), integers(1, 9, 4)], "may be zero"),
        ("return x0 % x1", [integers(1, 9, 4), integers(1, 9, 4)], "may be zero"),
        ("return torch.fmod(x0, x1)", [integers(1, 9, 4), integers(1, 9, 4)], "may be zero"),
        (
            "return torch.div(x0, x1, rounding_mode='trunc')",
            [integers(1, 9, 4), integers(1, 9, 4)],
            "may be zero",
        ),
        ("return x0 << x1", [integers(1, 9, 4), integers(1, 9, 4)], "by a constant below 64"),
        ("return x0 >> 64", [integers(1, 9, 4)], "by a constant below 64"),
        ("return x0 % 0", [integers(1, 9, 4)], "may be zero"),
        ("return F.avg_pool2d(x0, 2) + 1", [integers(1, 9, 1, 4, 4)], "average pooling of integers"),
        ("return torch.div(x0, x1, rounding_mode='floor')", [randn(4), randn(4)], "floor of a quotient"),
    ],
)
def test_refusals_name_the_reason(body: str, inputs: list[torch.Tensor], reason: str) -> None:
    definition, workload = problem(body, inputs)
    with pytest.raises(CannotCode, match=reason):
        generate(definition, (workload,), Options())


def test_empty_parts_of_a_concatenation(tmp_path: Path) -> None:
    body = "return torch.cat((x0[:, :0] + 1, x0 * 2, x0[:, 4:4].neg(), x0), 1) + 1"
    check(body, [randn(3, 9)], tmp_path)


UNSAVED = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(8))
        self.register_buffer("shift", torch.tensor([0.1, -float("inf"), 2.5, 1e-40] * 2), persistent=False)
        self.register_buffer("kept", torch.arange(8.0))
        self.register_buffer("mask", torch.ones(SIZE, SIZE, dtype=torch.bool).tril(), persistent=False)
        self.register_buffer("unread", torch.ones(90, 90), persistent=False)

    def forward(self, x0):
        return (x0 * self.scale + self.shift + self.kept) * self.mask[3, :8]


def get_inputs():
    return []


def get_init_inputs():
    return []
"""


def test_small_buffers_that_no_state_dict_has_are_in_the_source(tmp_path: Path) -> None:
    x = torch.rand(4, 8)
    definition, workload = problem("return x0", [x])
    definition = definition.model_copy(update={"reference": UNSAVED.replace("SIZE", "8")})
    new = load(generate(definition, (workload,), Options(threads=2)), tmp_path)
    old = load_problem(definition).build(0)
    new.load_state_dict(old.state_dict())
    torch.testing.assert_close(new(x), old(x), rtol=0, atol=1e-6, equal_nan=True)


def test_a_large_buffer_that_no_state_dict_has_is_refused() -> None:
    definition, workload = problem("return x0", [torch.rand(4, 8)])
    definition = definition.model_copy(update={"reference": UNSAVED.replace("SIZE", "99")})
    with pytest.raises(CannotCode, match="the buffer mask is not saved"):
        generate(definition, (workload,), Options())


def test_arguments_in_containers_are_refused() -> None:
    definition, workload = problem("return x0 + 1", [randn(4)])
    item = workload.inputs[0].model_copy(update={"name": "x0.0"})
    with pytest.raises(CannotCode, match="an input is a list, tuple or dict"):
        generate(definition, (workload.model_copy(update={"inputs": (item,)}),), Options())


def test_other_shapes_are_refused_at_run_time(tmp_path: Path) -> None:
    new, _ = build("return x0 * 2", [randn(4, 8)], tmp_path)
    with pytest.raises(ValueError, match="other inputs"):
        new(randn(4, 9))
    with pytest.raises(ValueError, match="other inputs"):
        new(randn(8, 4).t())


def test_partial_results_of_many_rows_fit_a_stack() -> None:
    definition, workload = problem("return x0 * x0.pow(2).mean(-1, keepdim=True)", [randn(2048, 4096)])
    files = generate(definition, (workload,), Options(threads=192, split="on"))
    kernel = next(f.content for f in files if f.path == "kernel.cpp")
    (size,) = re.findall(r"double partial0\[(\d+)\];", kernel)
    assert 2048 < int(size) * 8 < 1 << 17


def test_a_chain_is_one_kernel(tmp_path: Path) -> None:
    definition, workload = problem("return F.gelu(x0 + x1).tanh() * 2 - x0", [randn(8, 32), randn(32)])
    sources = {f.path: f.content for f in generate(definition, (workload,), Options())}
    assert sources["kernel.cpp"].count('extern "C"') == 1
    assert sources["model_new.py"].count(" = empty(") == 1


@pytest.mark.slow
def test_an_epilogue_takes_the_products_memory(tmp_path: Path) -> None:
    body, inputs = "return F.relu(F.linear(x0, x1, x2))", [randn(8, 32), randn(16, 32), randn(16)]
    definition, workload = problem(body, inputs)
    sources = {f.path: f.content for f in generate(definition, (workload,), Options())}
    assert "aten.mm.default" in sources["model_new.py"]
    assert " = empty(" not in sources["model_new.py"]
    check(body, inputs, tmp_path)


DRAWN = """
import random
import torch

class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale, self.offset = scale, random.random()

    def forward(self, x0):
        return x0 * self.scale + self.offset

def get_inputs(): return []
def get_init_inputs(): return [random.random()]
"""


def test_constants_that_a_constructor_draws_are_those_under_each_seed(tmp_path: Path) -> None:
    definition, x = Definition(name="drawn", op_type="other", reference=DRAWN), randn(64)
    options = Options(threads=2)
    files = generate(definition, (problem("return x0", [x])[1],), options)
    compare(load(files, tmp_path, flags_of(options)), load_problem(definition).build(seed=5), [x])


def test_the_header_is_read_in_a_fraction_of_a_kernels_compilation(tmp_path: Path) -> None:
    """With <cmath>, <algorithm> and <immintrin.h> it had 90,000 lines, which took longer than the kernels."""
    definition, workload = problem("return torch.exp(x0)", [randn(4, 8)])
    for file in generate(definition, (workload,), Options()):
        (tmp_path / file.path).write_text(file.content)
    command = ["g++", *FLAGS, "-E", "vector_math.h"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) < 5_000
