"""What a reference's operators say of it: open orders, rounding, and integers that are only computed with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils.weak import WeakTensorKeyDictionary

from ..workers.dispatch_mode import DispatchMode
from .dispatch import SIGNS, is_integer, leaves_order_open

_ARITHMETIC = frozenset([
    "add", "sub", "rsub", "mul", "neg", "abs", "sign", "square", "sum", "cumsum", "mm", "bmm", "mv", "dot",
    "addmm", "remainder", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
    "bitwise_left_shift", "bitwise_right_shift", "__and__", "__or__", "__xor__", "__lshift__", "__rshift__",
    "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__", "clone", "detach", "alias", "copy",
    "view", "_unsafe_view", "reshape", "_reshape_alias", "as_strided", "expand", "permute", "transpose",
    "t", "unsqueeze", "squeeze", "slice", "select", "split", "split_with_sizes", "unbind", "cat", "stack",
    "flip", "roll",
])  # fmt: skip
"""Operators that compute with an integer, or move it, whatever it is."""
_BOUNDING = ("remainder", "bitwise_and", "__and__")
"""Operators that leave an integer in a range that a constant names: the result may be a place."""
_BY_ADDRESS = ("tolist", "numpy", "__array__", "__dlpack__", "data_ptr", "untyped_storage")
"""Methods that read a tensor without an operator."""


class Operators(DispatchMode):
    """Watches one call of a reference.

    Args:
        inputs: its tensors.
    """

    def __init__(self, inputs: Sequence[torch.Tensor] = ()) -> None:
        super().__init__()
        self.ordered: list[torch.Tensor] = []
        """What operators order whose order among equal values torch leaves open."""
        self.signs = False
        """An operator gave vectors whose signs are open."""
        self.rounds = False
        """An operator took or gave anything but integers."""
        self._from: Any = WeakTensorKeyDictionary()
        """Tensors made from 64-bit integers among the inputs: the numbers of those."""
        for number, tensor in enumerate(inputs):
            if tensor.dtype is torch.int64:
                self._from[tensor] = frozenset([number])
        self._computed: set[int] = set()
        self._otherwise: set[int] = set()
        self._reads = _Reads(self)

    @property
    def arithmetic(self) -> list[int]:
        """Numbers of inputs that meet integer arithmetic alone, at least until a constant bounds them.

        They are no places, lengths, labels or sizes, and may be any integers.
        """
        return sorted(self._computed - self._otherwise)

    def __enter__(self) -> Operators:
        self._reads.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *of: Any) -> None:
        super().__exit__(*of)
        self._reads.__exit__(*of)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if leaves_order_open(func, kwargs):
            self.ordered.append(args[0])
        self.signs = self.signs or func._schema.name in SIGNS
        result = func(*args, **(kwargs or {}))
        taken, given = _tensors((args, kwargs)), _tensors(result)
        self.rounds = self.rounds or any(not is_integer(t) for t in [*taken, *given])
        sources = self._sources(taken)
        if sources:
            base = name if name.startswith("__") else name.removesuffix("_")
            integers = bool(given) and all(t.dtype is torch.int64 for t in [*taken, *given])
            (self._computed if integers and base in _ARITHMETIC else self._otherwise).update(sources)
            bounded = base in _BOUNDING and not isinstance(args[1], torch.Tensor) and args[1] >= 0
            for tensor in given:
                self._from[tensor] = frozenset() if bounded else sources
        return result

    def _sources(self, tensors: list[torch.Tensor]) -> frozenset[int]:
        return frozenset(n for t in tensors for n in self._from.get(t, ()))

    def read(self, tensor: Any) -> None:
        """Note that Python reads the numbers of a tensor."""
        self._otherwise |= self._sources(_tensors(tensor))


class _Reads(TorchFunctionMode):
    """Tells of tensors whose numbers Python reads."""

    def __init__(self, operators: Operators) -> None:
        super().__init__()
        self._operators = operators

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in _BY_ADDRESS:
            self._operators.read(args)
        return func(*args, **(kwargs or {}))


def _tensors(of: Any) -> list[torch.Tensor]:
    return [x for x in pytree.tree_leaves(of) if isinstance(x, torch.Tensor)]
