"""Expressions: hash-consed SSA nodes that a loop body computes for one position.

Arithmetic uses four kinds: `f` (float), `d` (double), `i` (int64) and `b` (bool). Elements of other types are
converted when read and written.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from ctypes import c_float
from dataclasses import dataclass, field
from typing import Any

from .index import Index, Indirect, walk_atoms


class Expr:
    """One value. Two expressions of the same `Arena` are equal if and only if they are identical."""

    __slots__ = ("args", "attr", "kind", "number", "op")

    def __init__(self, number: int, op: str, args: tuple[Expr, ...], attr: Any, kind: str) -> None:
        self.number = number
        """Position in the order of creation: arguments precede their users."""
        self.op = op
        self.args = args
        self.attr = attr
        """Further data of the operation: a constant, a buffer and an index, ..."""
        self.kind = kind

    def __repr__(self) -> str:
        return f"%{self.number}={self.op}"


@dataclass(frozen=True)
class Access:
    """Attribute of a `load`: the buffer and the element's index."""

    buffer: str
    index: Index


@dataclass(frozen=True)
class Ref:
    """Attribute of a `reduced`: the result of a reduction at a position of its kept dimensions."""

    reduction: int
    index: tuple[Index, ...]


@dataclass
class Arena:
    """Creates expressions; folds constants, and index comparisons that the index's range decides."""

    _nodes: dict[tuple[Any, ...], Expr] = field(default_factory=dict)

    def make(self, op: str, args: tuple[Expr, ...], attr: Any, kind: str) -> Expr:
        """The expression `op(args; attr)` of a kind."""
        key = (op, tuple(a.number for a in args), attr, type(attr), kind)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = Expr(len(self._nodes), op, args, attr, kind)
        return found

    def const(self, value: float | int | bool, kind: str) -> Expr:
        """A constant of a kind."""
        converted = {"f": float, "d": float, "i": int, "b": bool}[kind](value)
        return self.make("const", (), repr(converted), kind)

    def cast(self, value: Expr, kind: str) -> Expr:
        """Convert between kinds by C's rules."""
        if value.kind == kind:
            return value
        if value.op == "const":
            number = constant(value)
            return self.const(c_float(number).value if value.kind == "f" else number, kind)
        return self.make("cast", (value,), None, kind)

    def narrow(self, value: Expr, name: str) -> Expr:
        """The lowest bits of an integer, as a type such as `int32` or `uint8` has them."""
        if value.op != "const":
            return self.make("narrow", (value,), name, "i")
        count = 1 << int(name.partition("int")[2])
        low = 0 if name.startswith("u") else -count // 2
        return self.const((int(constant(value)) - low) % count + low, "i")

    def index(self, index: Index) -> Expr:
        """Expression for the integer value of `index`."""
        if not index.terms:
            return self.const(index.const, "i")
        return self.make("index", indirect_values(index), index, "i")

    def at_least(self, index: Index, bound: int) -> Expr:
        """`index >= bound`; a constant if the loop's range decides it."""
        low, high = index.bounds
        if low >= bound:
            return self.const(True, "b")
        if high < bound:
            return self.const(False, "b")
        return self.make("at_least", indirect_values(index), (index, bound), "b")

    def both(self, a: Expr | None, b: Expr | None) -> Expr | None:
        """Conjunction of two masks; None means true."""
        if a is None or is_true(a):
            return None if b is None or is_true(b) else b
        if b is None or is_true(b):
            return a
        return self.make("and", (a, b), None, "b")

    def negate(self, a: Expr) -> Expr:
        """Logical not."""
        if a.op == "const":
            return self.const(not constant(a), "b")
        return self.make("not", (a,), None, "b")

    def load(self, access: Access, mask: Expr | None, kind: str) -> Expr:
        """Read an element; if the mask is false, the value is 0."""
        args = indirect_values(access.index)
        if mask is None or is_true(mask):
            return self.make("load", args, access, kind)
        return self.make("masked_load", (mask, *args), access, kind)

    def where(self, condition: Expr, a: Expr, b: Expr) -> Expr:
        """`condition ? a : b`."""
        if condition.op == "const":
            return a if constant(condition) else b
        return a if a is b else self.make("where", (condition, a, b), None, a.kind)


def constant(value: Expr) -> float | int | bool:
    """The number in a `const`."""
    text = str(value.attr)
    if text in ("True", "False"):
        return text == "True"
    return float(text) if value.kind in "fd" else int(text)


def is_true(value: Expr) -> bool:
    """True if it is the constant true."""
    return value.op == "const" and value.attr == "True"


def indirect_values(index: Index) -> tuple[Expr, ...]:
    """Expressions that an index reads."""
    return tuple(dict.fromkeys(a.value for a in walk_atoms(index) if isinstance(a, Indirect)))


def walk(roots: Iterable[Expr], known: Container[int] = (), whole: Container[int] = ()) -> Iterator[Expr]:
    """All expressions that the roots need, arguments first, each once.

    Args:
        known, whole: numbers of those to leave out, and of those whose arguments are not needed.
    """
    found: dict[int, Expr] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.number not in found and node.number not in known:
            found[node.number] = node
            stack.extend(() if node.number in whole else node.args)
    yield from sorted(found.values(), key=lambda e: e.number)


def indices(node: Expr) -> tuple[Index, ...]:
    """The index expressions in a node's attribute."""
    if isinstance(node.attr, Access):
        return (node.attr.index,)
    if isinstance(node.attr, Ref):
        return node.attr.index
    if isinstance(node.attr, Index):
        return (node.attr,)
    if node.op == "at_least":
        return (node.attr[0],)
    return ()
