"""The call that a unit is dispatched on."""

from __future__ import annotations

import pytest
import torch

from agentforge.stitch.graph.printer import Unprintable
from agentforge.stitch.graph.rewrite import _signature
from agentforge.stitch.runtime.signature import Signature


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
