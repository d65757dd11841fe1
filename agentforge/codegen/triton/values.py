"""Values of a kernel in Triton: one line each; vectors if they depend on a vector of positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from agentforge.schema import CannotCode

from ..ir.expr import Expr, constant, indices, walk
from ..ir.index import Atom, Div, Index, Indirect, Var, walk_atoms
from ..ir.lazy import Buffer
from ..ir.nest import Reduce

_TYPES = {"f": "tl.float32", "d": "tl.float64", "i": "tl.int64", "b": "tl.int1"}
_BUILT_IN = {
    "abs", "ceil", "cos", "erf", "exp", "exp2", "floor", "log", "log2", "rsqrt", "sigmoid", "sin",
    "sqrt",
}  # fmt: skip
"""Functions of `triton.language`."""
_LIBRARY = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atan2": "atan2",
    "atanh": "atanh", "cosh": "cosh", "erfc": "erfc", "expm1": "expm1", "log10": "log10",
    "log1p": "log1p", "pow": "pow", "round": "rint", "sinh": "sinh", "tan": "tan", "tanh": "tanh",
    "trunc": "trunc",
}  # fmt: skip
"""Functions of CUDA's libdevice."""
_TEXTS = {
    "reciprocal": "1.0 / {0}", "relu": "tl.where({0} < 0, 0, {0})",
    "sign": "({0} > 0).to({type}) - ({0} < 0).to({type})", "isnan": "{0} != {0}",
    "isinf": "tl.abs({0}) == float('inf')", "bitwise_not": "~{0}",
    "maximum": "maximum({0}, {1})", "minimum": "minimum({0}, {1})",
    "floor_divide": "floor_divide({0}, {1})", "remainder": "remainder({0}, {1})",
    "fmod": "truncated_remainder({0}, {1})",
}  # fmt: skip
_OF_INTEGERS = {
    "abs", "maximum", "minimum", "sign", "bitwise_not", "relu", "floor_divide", "fmod", "remainder",
}  # fmt: skip
_UNCHANGED = {"ceil", "floor", "round", "trunc"}
"""Functions that do not change integers."""
_LARGEST = 3.4028235677973366e38
"""Larger numbers are infinite in single precision."""
_OPERATORS = {
    "neg": "-{0}", "not": "{0} == 0", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}",
    "bitand": "{0} & {1}", "bitor": "{0} | {1}", "bitxor": "{0} ^ {1}",
}  # fmt: skip


def plain(node: Expr) -> str:
    """A constant in Python syntax."""
    number = constant(node)
    if node.kind in "bi":
        return str(int(number))
    if math.isnan(number):
        return "float('nan')"
    if math.isinf(number) or (node.kind == "f" and abs(number) > _LARGEST):
        return f"float('{'-' if number < 0 else ''}inf')"
    return repr(float(number))


def literal(node: Expr) -> str:
    """A constant with an explicit type."""
    return f"tl.full((), {plain(node)}, {_TYPES[node.kind]})"


def identity(reduction: Reduce) -> str:
    """Neutral element of a reduction."""
    if reduction.op in ("sum", "prod"):
        return "0" if reduction.op == "sum" else "1"
    if reduction.kind == "i":
        return str(-(2**63) if reduction.op == "max" else 2**63 - 1)
    return "float('-inf')" if reduction.op == "max" else "float('inf')"


@dataclass(frozen=True)
class Value:
    """A name; `vector` says whether it is a vector."""

    text: str
    vector: bool

    def __str__(self) -> str:
        return self.text


@dataclass
class Values:
    """Values known at a point of a kernel.

    A value that does not depend on the scope's own variables is named in the outer scope, so that all inner
    scopes share it.
    """

    buffers: dict[str, Buffer]
    add: Callable[[str], None]
    outer: Values | None = None
    variables: frozenset[Var] = frozenset()
    """Loop variables of this scope."""
    vector: bool = False
    """True if they are vectors."""
    inside: str = ""
    """Mask of the valid positions."""
    names: dict[int, Value] = field(default_factory=dict)
    reductions: dict[int, Value] = field(default_factory=dict)
    scopes: dict[tuple[Var, ...], tuple[Values, str]] = field(default_factory=dict)
    """Scopes of whole rows, by their variables."""

    def over(self, loops: Sequence[Var], inside: str, *, vector: bool = True) -> Values:
        """A scope in which these variables have values."""
        return Values(self.buffers, self.add, self, frozenset(loops), vector, inside)

    def define_reduction(self, number: int, name: str, *, vector: bool) -> None:
        """Name a reduction's result from now on."""
        self.reductions[number] = Value(name, vector)

    def known(self, root: Expr) -> Value:
        """Name of a value, after writing the lines that compute it."""
        for node in walk([root]):
            if self._find(node) is None:
                self._define(node)
        found = self._find(root)
        assert found is not None
        return found

    def address(self, buffer: str, index: Index, vector: bool) -> str:
        """Pointers to elements; with `vector`, one per position even if all are equal."""
        text = self._index(index)
        if vector and not self._varies(index):
            text = f"{text} + tl.zeros_like({self.inside}).to(tl.int32)"
        return f"{buffer} + ({text})"

    # ---------------------------------------------------------------- names

    def _find(self, node: Expr) -> Value | None:
        if node.op == "const":
            return Value(literal(node), False)
        scope: Values | None = self
        while scope is not None:
            if node.number in scope.names:
                return scope.names[node.number]
            if node.op == "reduced" and node.attr.reduction in scope.reductions:
                return scope.reductions[node.attr.reduction]
            scope = scope.outer
        return None

    def _get(self, node: Expr) -> Value:
        found = self._find(node)
        assert found is not None
        return found

    def _owner(self, node: Expr) -> Values:
        """The outermost scope that knows everything a value depends on."""
        if self.outer is None:
            return self
        own = any(v in self.variables for i in indices(node) for v in i.variables)
        needs = own or any(a.op != "const" and a.number in self.names for a in node.args)
        return self if needs else self.outer._owner(node)

    def _define(self, node: Expr) -> None:
        if node.op == "reduced":
            raise CannotCode("a reduction is read before it is complete")
        owner = self._owner(node)
        vector = any(self._get(a).vector for a in node.args) or any(self._varies(i) for i in indices(node))
        name = f"v{node.number}"
        self.add(f"{name} = {self._expression(node, vector)}")
        owner.names[node.number] = Value(name, vector)

    def _varies(self, index: Index) -> bool:
        """True if an index is a vector here."""
        scope: Values | None = self
        while scope is not None:
            if scope.vector and index.variables & scope.variables:
                return True
            scope = scope.outer
        return any(self._get(a.value).vector for a in walk_atoms(index) if isinstance(a, Indirect))

    # ---------------------------------------------------------------- text

    def _index(self, index: Index) -> str:
        parts = [self._atom(a) if c == 1 else f"{c} * {self._atom(a)}" for a, c in index.terms]
        if index.const or not parts:
            parts.append(str(index.const))
        return " + ".join(parts)

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Var):
            return atom.name
        if isinstance(atom, Indirect):
            return self._get(atom.value).text
        inner, den = f"({self._index(atom.num)})", atom.den
        if atom.num.bounds[0] < 0:
            # Integer division truncates on a GPU; both roundings agree if the remainder is zero.
            rest = f"(({inner} % {den} + {den}) % {den})"
            return f"(({inner} - {rest}) // {den})" if isinstance(atom, Div) else rest
        return f"({inner} // {den})" if isinstance(atom, Div) else f"({inner} % {den})"

    def _expression(self, node: Expr, vector: bool) -> str:
        args = self._arguments(node)
        if node.op in ("load", "masked_load"):
            return self._load(node, vector)
        if node.op == "index":
            return f"({self._index(node.attr)}).to(tl.int64)"
        if node.op == "at_least":
            return f"({self._index(node.attr[0])}) >= {node.attr[1]}"
        if node.op == "cast":
            return f"{args[0]} != 0" if node.kind == "b" else f"{args[0]}.to({_TYPES[node.kind]})"
        if node.op == "bin" and node.attr == "/" and node.kind == "i":
            return f"truncated_divide({args[0]}, {args[1]})"
        if node.op in ("bin", "cmp"):
            return f"{args[0]} {node.attr} {args[1]}"
        if node.op == "where":
            return f"tl.where({', '.join(args)})"
        if node.op == "call":
            return self._call(node, args)
        if node.op == "checked":
            return self._checked(node, args[0], vector)
        if node.op == "narrow":
            return f"{args[0]}.to(tl.{node.attr}).to({_TYPES[node.kind]})"
        return _OPERATORS[node.op].format(*args)

    def _checked(self, node: Expr, index: str, vector: bool) -> str:
        """An index, or 0 if it is not in its range.

        A kernel cannot raise: Triton asserts the range on the device if TRITON_DEBUG is set.
        """
        low, size = node.attr
        valid = f"({index} >= {low}) & ({index} < {size})"
        mask = f", mask={self.inside}" if vector and self.inside else ""
        self.add(f"tl.device_assert({valid}, 'an index is out of bounds'{mask})")
        position = f"tl.where({index} < 0, {index} + {size}, {index})" if low else index
        return f"tl.where({valid}, {position}, 0)"

    def _arguments(self, node: Expr) -> list[str]:
        """Constants next to another operand take its type; on their own they need an explicit type."""
        mixed = node.op in ("bin", "cmp", "where") and any(a.op != "const" for a in node.args[-2:])
        return [
            plain(a) if mixed and a.op == "const" and a.kind in "fi" else self._get(a).text for a in node.args
        ]

    def _load(self, node: Expr, vector: bool) -> str:
        buffer = self.buffers[node.attr.buffer]
        masks = [self._get(node.args[0]).text] if node.op == "masked_load" else []
        if vector and self.inside:
            masks.insert(0, self.inside)
        pointers = self.address(buffer.name, node.attr.index, vector)
        extra = f", mask={' & '.join(masks)}, other=0" if masks else ""
        loaded = f"tl.load({pointers}{extra})"
        if buffer.dtype is torch.bool:
            return f"{loaded} != 0"
        return f"{loaded}.to({_TYPES[node.kind]})"

    def _call(self, node: Expr, args: list[str]) -> str:
        name, kind = node.attr, node.args[0].kind
        if kind == "i" and name in _UNCHANGED:
            return args[0]
        if kind == "i" and name not in _OF_INTEGERS:
            raise CannotCode(f"{name} of integers is not supported in Triton")
        if name in _TEXTS:
            return _TEXTS[name].format(*args, type=_TYPES[node.kind])
        if name in _BUILT_IN:
            return f"tl.{name}({', '.join(args)})"
        if name in _LIBRARY:
            return f"libdevice.{_LIBRARY[name]}({', '.join(args)})"
        raise CannotCode(f"{name} is not supported in Triton")
