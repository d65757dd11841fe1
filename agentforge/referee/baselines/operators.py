"""What a reference's operators say of it: open orders, rounding, integers that are only computed with, and
sizes that it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils.weak import WeakTensorKeyDictionary

from ..inputs.structure import is_whole
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
_CONVERTING = ("_to_copy", "copy")
"""Operators that give integers as floats."""
_BOUNDING = ("remainder", "bitwise_and", "__and__")
"""Operators that leave an integer in a range that a constant names: the result may be a place."""
_CHOOSING = frozenset(
    ["floor_divide", "div", "where", "ge", "lt", "gt", "le", "eq", "ne", "logical_and", "logical_or"]
)
"""Operators that divide integers by constants, compare them with constants, or choose among them."""
_MOVING = frozenset([
    "clone", "detach", "alias", "view", "_unsafe_view", "reshape", "_reshape_alias", "expand", "permute",
    "transpose", "t", "unsqueeze", "squeeze", "slice", "select", "flip",
])  # fmt: skip
"""Operators that leave each integer as it is."""
_AT_PLACES = frozenset([
    "index", "index_select", "embedding", "gather", "take", "index_add", "scatter_add",
])  # fmt: skip
"""Operators that read what comes first at the places that follow, or add to it there."""
_DECIDING = {"ge": (-1, 0), "lt": (-1, 0), "gt": (0, 1), "le": (0, 1), "eq": (0,), "ne": (0,)}
"""What a comparison with a constant tells apart, from the constant."""
_ORDER = ("ge", "lt", "gt", "le")
_BY_ADDRESS = ("tolist", "numpy", "__array__", "__dlpack__", "data_ptr", "untyped_storage")
"""Methods that read a tensor without an operator."""
_SIZES = (torch.Tensor.size, torch.Tensor.shape.__get__)
"""What reads a tensor's sizes."""


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
        self.lowers = False
        """An operator made 16-bit floats from wider ones, as autocast does."""
        self._from: Any = WeakTensorKeyDictionary()
        """Tensors made from 64-bit integers among the inputs: the numbers of those."""
        for number, tensor in enumerate(inputs):
            if tensor.dtype is torch.int64:
                self._from[tensor] = frozenset([number])
        self._as_given: Any = WeakTensorKeyDictionary()
        """Tensors that have an input's integers as they are: the number of that input."""
        self._inputs: Any = WeakTensorKeyDictionary()
        """The inputs, each with its number."""
        for number, tensor in enumerate(inputs):
            self._inputs[tensor] = number
            if is_whole(tensor):
                self._as_given[tensor] = number
        self._measured: set[int] = set()
        self._thresholds: set[tuple[int, int]] = set()
        self._compared: set[int] = set()
        self._places: set[int] = set()
        self._more_than_places: set[int] = set()
        self._computed: set[int] = set()
        self._chosen: set[int] = set()
        self._otherwise: set[int] = set()
        self._as_floats: set[int] = set()
        self._reads = _Reads(self)

    @property
    def arithmetic(self) -> list[int]:
        """Numbers of inputs that meet integer arithmetic alone, at least until a constant bounds them.

        They are no places, lengths, labels or sizes, and may be any integers.
        """
        return sorted(self._computed - self._chosen - self._as_floats - self._otherwise)

    @property
    def chosen(self) -> list[int]:
        """Numbers of inputs that meet integer arithmetic alone, among whose results constants choose."""
        return sorted(self._chosen - self._as_floats - self._otherwise)

    @property
    def as_floats(self) -> list[int]:
        """Numbers of inputs that meet integer arithmetic alone, if any, and then are made floats."""
        return sorted(self._as_floats - self._otherwise)

    @property
    def of_inputs(self) -> dict[str, list[Any]]:
        """`arithmetic`, `chosen` and `as_floats`; as `thresholds`, numbers of inputs with integers that a
        constant tells apart; as `compared`, numbers of inputs whose integers are less or more than others;
        as `places`, numbers of inputs whose integers are only places to read from or to add to; as
        `measured`, numbers of inputs whose sizes Python reads."""
        return {
            "arithmetic": self.arithmetic,
            "chosen": self.chosen,
            "as_floats": self.as_floats,
            "thresholds": [list(x) for x in sorted(self._thresholds)],
            "compared": sorted(self._compared),
            "places": sorted(self._places - self._more_than_places),
            "measured": sorted(self._measured),
        }

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
        self._decide(name.removesuffix("_"), args, kwargs or {}, given)
        self.rounds = self.rounds or any(not is_integer(t) for t in [*taken, *given])
        self.lowers = self.lowers or (_widest_float(given) == 2 < _widest_float(taken))
        sources = self._sources(taken)
        if sources:
            base = name if name.startswith("__") else name.removesuffix("_")
            self._use(base, args, [*taken, *given], many=bool(given)).update(sources)
            bounded = base in _BOUNDING and not isinstance(args[1], torch.Tensor) and args[1] >= 0
            for tensor in given:
                self._from[tensor] = frozenset() if bounded or tensor.is_floating_point() else sources
        return result

    def _use(self, name: str, args: Any, tensors: list[torch.Tensor], *, many: bool) -> set[int]:
        """Where an operator's sources are noted."""
        types = {t.dtype for t in tensors}
        if many and name in _CONVERTING and tensors[-1].is_floating_point():
            return self._as_floats
        if not many or not types <= {torch.int64, torch.bool}:
            return self._otherwise
        if name in _ARITHMETIC:
            return self._computed if types == {torch.int64} else self._chosen
        own = name in _DECIDING and (args[0] in self._as_given or isinstance(args[1], torch.Tensor))
        return self._otherwise if own or name not in _CHOOSING else self._chosen

    def _decide(self, name: str, args: Any, kwargs: Any, given: list[torch.Tensor]) -> None:
        """Note which integers an operator tells apart by a constant, or by their order."""
        taken = self._numbers((args, kwargs))
        if name in _ORDER:
            self._compared |= taken
        if name in _AT_PLACES:
            self._places |= self._numbers((args[1:], kwargs))
            self._more_than_places |= self._numbers(args[0])
        elif name not in _MOVING:
            self._more_than_places |= taken
        first = args[0] if args else None
        number = self._as_given.get(first) if isinstance(first, torch.Tensor) else None
        if number is None:
            return
        if name in _MOVING:
            for tensor in given:
                self._as_given[tensor] = number
        self._thresholds |= {(number, value) for value in _told_apart(name, args, kwargs)}

    def _sources(self, tensors: list[torch.Tensor]) -> frozenset[int]:
        return frozenset(n for t in tensors for n in self._from.get(t, ()))

    def _numbers(self, of: Any) -> set[int]:
        """Numbers of the inputs whose integers these tensors have as they are."""
        return {self._as_given[t] for t in _tensors(of) if t in self._as_given}

    def read(self, tensor: Any) -> None:
        """Note that Python reads the numbers of a tensor."""
        self._more_than_places |= self._numbers(tensor)
        self._otherwise |= self._sources(_tensors(tensor))

    def measure(self, tensor: torch.Tensor) -> None:
        """Note that Python reads the sizes of a tensor."""
        if tensor in self._inputs:
            self._measured.add(self._inputs[tensor])


def watching(model: Callable[..., Any], found: list[Operators]) -> Callable[..., Any]:
    """The model; each call adds the operators that the model ran, and not those that read its answer."""

    def watched(*args: Any, **kwargs: Any) -> Any:
        with Operators(_tensors((args, kwargs))) as seen:
            found.append(seen)
            return model(*args, **kwargs)

    return watched


class _Reads(TorchFunctionMode):
    """Tells of tensors whose numbers or sizes Python reads."""

    def __init__(self, operators: Operators) -> None:
        super().__init__()
        self._operators = operators

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in _BY_ADDRESS:
            self._operators.read(args)
        if func in _SIZES:
            self._operators.measure(args[0])
        return func(*args, **(kwargs or {}))


def _told_apart(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int]:
    """Integers that an operator tells from their neighbours by a constant."""
    given = [*args[1:3], None, None]
    steps: list[tuple[Any, int]] = [(given[0], step) for step in _DECIDING.get(name, ())]
    if name in ("clamp", "clamp_min"):
        steps.append((kwargs.get("min", given[0]), -1))
    if name in ("clamp", "clamp_max"):
        steps.append((kwargs.get("max", given[1 if name == "clamp" else 0]), 1))
    return [end + step for end, step in steps if isinstance(end, int) and not isinstance(end, bool)]


def _tensors(of: Any) -> list[torch.Tensor]:
    return [x for x in pytree.tree_leaves(of) if isinstance(x, torch.Tensor)]


def _widest_float(tensors: list[torch.Tensor]) -> int:
    """Bytes of an element of the widest floating-point tensor; 0 without one."""
    return max((t.itemsize for t in tensors if t.is_floating_point()), default=0)
