"""The call that a unit is dispatched on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from agentforge.stitch.graph.printer import Unprintable
from agentforge.stitch.graph.rewrite import _signature
from agentforge.stitch.runtime.signature import Signature

from .making import same, stitch_in_process
from .test_runtime import both, engaged

FEATURES = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 8)

    def forward(self, x, **features):
        return torch.sigmoid(self.net(torch.cat(list(features.values()), 1))) * x


def get_inputs():
    return {"b": torch.randn(4, 4), "x": torch.randn(4, 8), "a": torch.randn(4, 4)}


def get_init_inputs():
    return []
"""


def test_a_dict_in_another_order_is_another_call() -> None:
    a, b = torch.zeros(2), torch.ones(2)
    signature = Signature(_signature((({"b": b, "a": a}, [a]), {})))
    assert signature.match(({"b": b, "a": a}, [a]), {}) is not None
    assert signature.match(({"a": a, "b": b}, [a]), {}) is None


def test_a_lazy_conjugate_or_negative_is_another_call() -> None:
    plain = torch.randn(2, 3, dtype=torch.complex64)
    signature = Signature(_signature(((plain, plain.real), {})))
    assert signature.match((plain, plain.real), {}) is not None
    assert signature.match((plain.conj(), plain.real), {}) is None
    negative = plain.conj().imag
    assert negative.is_neg()
    assert signature.match((plain, negative), {}) is None


def test_a_tensor_that_is_not_dense_has_no_layout() -> None:
    dense = torch.eye(3)
    for odd in (dense.to_sparse(), torch.nested.nested_tensor([dense, dense[:2]], layout=torch.jagged)):
        with pytest.raises(Unprintable, match="among its arguments"):
            _signature(((odd,), {}))


def test_keywords_in_another_order_are_another_call_if_the_forward_may_see_it(tmp_path: Path) -> None:
    stitched = stitch_in_process(FEATURES, tmp_path)
    original, optimized = both(stitched)
    _, given = stitched.inputs(0)
    for _known in (False, True):
        for order, runs_kernels in (("bxa", True), ("xba", True), ("axb", False), ("xab", False)):
            kwargs = {name: given[name] for name in order}
            output, ran = engaged(stitched, optimized, (), kwargs)
            assert ran == runs_kernels
            with torch.no_grad():
                assert same(output, original(**kwargs))


@pytest.mark.parametrize(
    ("forward", "ordered"),
    [
        (lambda self, a, b, c: None, []),
        (lambda self, *, a, b, c: None, []),
        (lambda self, a, b, **rest: None, []),
        (lambda self, a, **rest: None, ["c", "b"]),
        (lambda self, a, b, /, **c: None, ["c", "b", "a"]),
    ],
)
def test_only_what_goes_to_variadic_keywords_has_an_order(
    forward: Callable[..., Any], ordered: list[str]
) -> None:
    x = torch.zeros(2)
    signature = Signature(_signature(((), {"c": x, "b": x, "a": x})))
    assert signature.ordered(inspect.signature(forward)) == ordered
