"""Spelled-out attention is recognised, and what cannot be said by the fused operator is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from agentforge.agents.playbook.attention import attention_source, flash_attention
from agentforge.problems.kernelbench import import_source
from agentforge.schema import CannotCode, Definition, DType, TensorInput, Workload
from tests.codegen.compiled import load

HEAD = """
import torch
aten = torch.ops.aten
class Model(torch.nn.Module):
    def forward(self, q, k, mask, v):
        scores = aten.matmul.default(q, k)
"""
TAIL = """
        weights = aten.softmax.int(scores, -1)
        return aten.matmul.default(weights, v)
def get_inputs():
    return []
def get_init_inputs():
    return []
"""


def definition(body: str, tail: str = TAIL) -> Definition:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return Definition(name="attention", op_type="attention", reference=HEAD + lines + tail)


def arguments(boolean: bool) -> tuple[Any, ...]:
    torch.manual_seed(0)
    q, v = torch.randn(2, 3, 17, 8), torch.randn(2, 3, 11, 8)
    k = torch.randn(2, 3, 11, 8).transpose(-1, -2)
    mask = torch.rand(17, 11) > 0.7
    mask[:, 0] = False
    return q, k, mask if boolean else torch.where(mask, -float("inf"), 0.3), v


@pytest.mark.parametrize(
    ("body", "boolean"),
    [
        ("scores = aten.div.Tensor(scores, 2.5)", False),
        ("scores = aten.div.Tensor(scores, 2.5)\nscores = aten.add.Tensor(scores, mask)", False),
        ("scores = aten.mul.Tensor(scores, 0.3)\nscores = aten.add.Tensor(mask, scores)", False),
        ('scores = aten.masked_fill.Scalar(scores, mask, -float("inf"))', True),
    ],
)
def test_what_it_writes_agrees_with_the_reference(body: str, boolean: bool) -> None:
    problem = definition(body)
    reference = import_source(problem.reference, "reference_attention").Model()
    ours = import_source(attention_source(problem), "candidate_attention").ModelNew()
    given = arguments(boolean)
    torch.testing.assert_close(ours(*given), reference(*given))


@pytest.mark.parametrize(
    "body",
    [
        "scores = aten.add.Tensor(scores, mask)\nscores = aten.mul.Tensor(scores, 2.0)",
        "scores = aten.tanh.default(scores)",
        "scores = aten.add.Tensor(scores, mask)\nscores = aten.add.Tensor(scores, mask)",
        "scores = aten.masked_fill.Scalar(scores, mask, 0.0)",
    ],
)
def test_what_the_operator_cannot_say_is_refused(body: str) -> None:
    with pytest.raises(CannotCode):
        attention_source(definition(body))


@pytest.mark.parametrize(
    "body",
    [
        "scores = aten.to.dtype(aten.add.Tensor(scores, mask), torch.float32)",
        "scores = aten.add.Tensor(aten.to.dtype(scores, torch.float32), mask)",
    ],
)
@pytest.mark.parametrize(
    "cast",
    [
        "aten.to.dtype(weights, torch.bfloat16)",
        "aten._to_copy.default(weights, dtype=torch.bfloat16)",
        "aten.type_as.default(weights, q)",
    ],
)
def test_a_softmax_in_higher_precision(body: str, cast: str) -> None:
    tail = TAIL.replace("(scores, -1)", f"(scores, -1, torch.float32)\n        weights = {cast}")
    problem = definition(body, tail)
    reference = import_source(problem.reference, "reference_attention").Model()
    ours = import_source(attention_source(problem), "candidate_attention").ModelNew()
    given = [t.bfloat16() for t in arguments(boolean=False)]
    torch.testing.assert_close(ours(*given), reference(*given), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("body", ["scores = aten.to.dtype(scores, torch.bfloat16)", "v = v"])
def test_the_tiled_kernel_refuses_lower_precision_inside(body: str) -> None:
    cast = "aten.to.dtype(weights, torch.bfloat16)\n        v = aten.to.dtype(v, torch.bfloat16)"
    tail = TAIL.replace("(scores, -1)", f"(scores, -1)\n        weights = {cast}")
    with pytest.raises(CannotCode):
        flash_attention(definition(body, tail), workload(DType.FLOAT32), queries=24, keys=32)


def test_scores_that_are_wanted_themselves_are_refused() -> None:
    tail = TAIL.replace(
        "return aten.matmul.default(weights, v)", "return aten.matmul.default(weights, v), weights"
    )
    with pytest.raises(CannotCode, match="more than once"):
        attention_source(definition("scores = aten.mul.Tensor(scores, 0.3)", tail))


ADDED = "scores = aten.div.Tensor(scores, 2.5)\nscores = aten.add.Tensor(scores, mask)"
FILLED = 'scores = aten.masked_fill.Scalar(scores, mask, -float("inf"))'
COMPARED = "mask = aten.eq.Scalar(mask, 0)\n" + FILLED
"""A mask of floats becomes boolean."""
CAST = "mask = aten.mul.Tensor(aten.to.dtype(mask, torch.float32), -9.0)\n" + ADDED
"""A boolean mask is added as floats."""
UNMASKED = "scores = aten.mul.Tensor(scores, 0.3)"


def workload(*dtypes: DType) -> Workload:
    inputs = tuple(TensorInput(name=f"x{i}", shape=(1,), dtype=dtype) for i, dtype in enumerate(dtypes))
    return Workload(name="w", inputs=inputs)


def causal(queries: int, keys: int) -> torch.Tensor:
    return torch.full((queries, keys), -float("inf")).triu(1)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Model and kernel by the body between the products."""

    def build(body: str) -> tuple[Any, Any]:
        problem = definition(body)
        dtypes = (DType.FLOAT32, DType.BOOL) if body in (FILLED, CAST) else (DType.FLOAT32,)
        files = flash_attention(problem, workload(*dtypes), queries=24, keys=32)
        new = load(files, tmp_path_factory.mktemp("attention"))
        return import_source(problem.reference, "reference_attention").Model(), new

    return {body: build(body) for body in (ADDED, FILLED, COMPARED, CAST, UNMASKED)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lead", "queries", "keys", "width", "value_width"),
    [
        ((2, 3), 70, 70, 48, 48),
        ((1, 2), 24, 32, 16, 16),
        ((2,), 25, 33, 7, 5),
        ((2, 1), 1, 131, 64, 40),
        ((1, 1), 3, 1, 1, 1),
    ],
)
def test_kernel_agrees_with_the_reference(
    kernels: Any, lead: tuple[int, ...], queries: int, keys: int, width: int, value_width: int
) -> None:
    torch.manual_seed(1)
    q = torch.randn(*lead, width, queries).transpose(-1, -2)  # not contiguous where it is wanted so
    k, v = torch.randn(*lead, keys, width).transpose(-1, -2), torch.randn(*lead, keys, value_width)
    mask = causal(queries, keys)
    per_head = torch.rand(*lead, queries, keys) > 0.8
    per_head[..., 0] = False
    for body, given in (
        (ADDED, mask),
        (ADDED, torch.randn(*lead, 1, keys)),
        (ADDED, torch.randn(queries, 1)),
        (FILLED, mask < 0),
        (FILLED, per_head),
        (COMPARED, torch.exp(mask)),
        (CAST, per_head),
        (UNMASKED, mask),
    ):
        reference, new = kernels[body]
        torch.testing.assert_close(new(q, k, given, v), reference(q, k, given, v))


@pytest.mark.parametrize("name", ["q", "k", "v"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_special_values_reach_the_result_from_behind_the_mask(kernels: Any, name: str, value: float) -> None:
    torch.manual_seed(2)
    given = {"q": torch.randn(1, 2, 70, 8), "k": torch.randn(1, 2, 8, 70), "v": torch.randn(1, 2, 70, 8)}
    given[name].view(-1)[-1] = value
    reference, new = kernels[ADDED]
    arguments = (given["q"], given["k"], causal(70, 70), given["v"])
    torch.testing.assert_close(new(*arguments), reference(*arguments), equal_nan=True)


def test_rows_that_see_no_key_are_nan(kernels: Any) -> None:
    mask = torch.zeros(70, 70)
    mask[30:60] = -float("inf")
    arguments = (torch.randn(2, 70, 8), torch.randn(2, 8, 70), mask, torch.randn(2, 70, 8))
    for body, given in ((ADDED, mask), (FILLED, mask < 0)):
        reference, new = kernels[body]
        expected = reference(arguments[0], arguments[1], given, arguments[3])
        torch.testing.assert_close(
            new(arguments[0], arguments[1], given, arguments[3]), expected, equal_nan=True
        )


def test_nothing_to_attend_to(kernels: Any) -> None:
    reference, new = kernels[UNMASKED]
    empty = (torch.randn(2, 4, 8), torch.randn(2, 8, 0), None, torch.randn(2, 0, 8))
    assert torch.equal(new(*empty), reference(*empty))


def test_kernel_is_for_float32_and_whole_tiles() -> None:
    with pytest.raises(CannotCode, match="float32"):
        flash_attention(definition(ADDED), workload(DType.BFLOAT16), queries=24, keys=32)
    with pytest.raises(CannotCode, match="multiple"):
        flash_attention(definition(ADDED), workload(DType.FLOAT32), queries=25, keys=32)
