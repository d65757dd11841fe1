"""Spelled-out attention is recognised, and what cannot be said by the fused operator is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from agentforge.agents import CannotCode
from agentforge.agents.playbook.attention import attention_source
from agentforge.harness.convention import import_source
from agentforge.schema import Definition

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


def test_scores_that_are_wanted_themselves_are_refused() -> None:
    tail = TAIL.replace(
        "return aten.matmul.default(weights, v)", "return aten.matmul.default(weights, v), weights"
    )
    with pytest.raises(CannotCode, match="more than once"):
        attention_source(definition("scores = aten.mul.Tensor(scores, 0.3)", tail))
