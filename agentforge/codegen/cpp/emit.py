"""Write C++ for a loop nest: values as SSA lines, each in the outermost loop in which it is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from ..ir.expr import Access, Expr, constant, indices, walk
from ..ir.index import Index, Var, render_index
from ..ir.lazy import Buffer
from ..ir.nest import Pass, Reduce

CTYPES = {"f": "float", "d": "double", "i": "int64_t", "b": "bool"}
POINTERS = {
    torch.float32: "float", torch.float64: "double", torch.int64: "int64_t", torch.int32: "int32_t",
    torch.int16: "int16_t", torch.int8: "int8_t", torch.uint8: "uint8_t", torch.bool: "uint8_t",
    torch.float16: "uint16_t", torch.bfloat16: "uint16_t",
}  # fmt: skip
EXPENSIVE = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc", "exp", "exp2",
    "expm1", "log", "log10", "log1p", "log2", "pow", "sigmoid", "sin", "sinh", "tan", "tanh",
})  # fmt: skip
"""Functions whose results are worth keeping."""


def literal(value: Expr) -> str:
    """C++ literal of a constant."""
    number = constant(value)
    if value.kind == "b":
        return "true" if number else "false"
    if value.kind == "i":
        return "INT64_MIN" if number == -(2**63) else f"int64_t({number})"
    suffix = "f" if value.kind == "f" else ""
    if math.isnan(number):
        return f"af::nan{suffix or 'd'}()"
    if math.isinf(number):
        text = f"af::inf{suffix or 'd'}()"
        return f"(-{text})" if number < 0 else text
    if value.kind == "f" and abs(number) > 3.4028235677973366e38:
        return "(-af::inff())" if number < 0 else "af::inff()"
    text = f"{number!r}{suffix}"
    return f"({text})" if text.startswith("-") else text


def identity(reduction: Reduce, kind: str) -> str:
    """Neutral element of a reduction."""
    if reduction.op in ("sum", "prod"):
        return f"{CTYPES[kind]}({'0' if reduction.op == 'sum' else '1'})"
    if kind == "i":
        return "INT64_MIN" if reduction.op == "max" else "INT64_MAX"
    text = "af::inff()" if kind == "f" else "af::infd()"
    return f"-{text}" if reduction.op == "max" else text


def combine(reduction: Reduce, into: str, value: str) -> str:
    """Statement that adds a value to an accumulator."""
    if reduction.op == "sum":
        return f"{into} += {value};"
    if reduction.op == "prod":
        return f"{into} *= {value};"
    return f"{into} = af::{reduction.op}imum({into}, {value});"


def load_text(buffer: Buffer, element: str) -> str:
    """An element, converted to the kind of its arithmetic."""
    if buffer.dtype is torch.bfloat16:
        return f"af::from_bfloat16({element})"
    if buffer.dtype is torch.float16:
        return f"af::from_half({element})"
    if buffer.dtype is torch.bool:
        return f"({element} != 0)"
    return element


def store_text(buffer: Buffer, value: str) -> str:
    """A value, converted to a buffer's element type."""
    if buffer.dtype is torch.bfloat16:
        return f"af::to_bfloat16({value})"
    if buffer.dtype is torch.float16:
        return f"af::to_half({value})"
    return f"{POINTERS[buffer.dtype]}({value})"


@dataclass
class Writer:
    """Lines of C++ with their indentation."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def add(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head {` ... `}`."""
        self.add(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.add("}")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class Values:
    """Names of the values known at a point of the program, and how to compute the others.

    Attributes:
        levels: loop level of each variable in scope: 0 is the row, 1 the outermost column loop, ...
        staged: C++ of values that an earlier pass kept in scratch, by expression number.
    """

    buffers: dict[str, Buffer]
    reference: Callable[[int], str]
    reference_level: int = 0
    levels: dict[Var, int] = field(default_factory=dict)
    staged: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)

    def fork(self) -> Values:
        """A copy whose new names are limited to an inner scope."""
        return Values(
            self.buffers, self.reference, self.reference_level, dict(self.levels), dict(self.staged),
            dict(self.names), self.renamed,
        )  # fmt: skip

    def order(self, roots: Sequence[Expr]) -> list[Expr]:
        """Unnamed values that the roots need, arguments first; staged values have no arguments."""
        return list(walk(roots, self.names, self.staged))

    def level(self, node: Expr, known: dict[int, int]) -> int:
        """The loop level at which a value is known."""
        if node.number in self.names and node.number not in known:
            return 0
        if node.number not in known:
            own = [self.levels.get(v, 0) for i in indices(node) for v in i.variables]
            if node.op == "reduced":
                own = [self.reference_level]
            if node.number in self.staged:
                known[node.number] = max(self.levels.values(), default=0)
            else:
                known[node.number] = max([0, *own, *(self.level(a, known) for a in node.args)])
        return known[node.number]

    def name(self, node: Expr) -> str:
        """C++ name of a value whose line was written."""
        if node.op == "const":
            return literal(node)
        if node.number in self.names:
            return self.names[node.number]
        raise KeyError(node)

    def index(self, index: Index) -> str:
        """C++ of an index."""
        return render_index(index, self.name)

    def define(self, writer: Writer, node: Expr) -> None:
        """Write the line that computes a value."""
        if node.op == "const":
            return
        if node.number in self.staged:
            self.names[node.number] = self.staged[node.number]
            return
        if node.op == "reduced":
            self.names[node.number] = self.reference(node.attr.reduction)
            return
        name = f"v{node.number}"
        writer.add(f"const {CTYPES[node.kind]} {name} = {self.expression(node)};")
        if node.op == "checked":
            low, size = node.attr
            writer.add(f"wrong = af::wrong_index(wrong, {self.name(node.args[0])}, {low}, {size});")
        self.names[node.number] = name

    def element(self, access: Access) -> str:
        """C++ lvalue of an element of a buffer."""
        pointer = self.renamed.get(access.buffer, access.buffer)
        return f"{pointer}[{self.index(access.index)}]"

    def cast(self, node: Expr, value: str) -> str:
        """C++ of a value in another kind; AVX2 has no vectors of 64-bit integers to convert to numbers."""
        source, kind = node.args[0], CTYPES[node.kind]
        if node.kind == "b":
            return f"{value} != 0"
        if source.kind == "i" and node.kind in "fd":
            return f"{kind}(int32_t({value}))" if self.in_32_bits(source) else f"from_int64<{kind}>({value})"
        return f"af::cast<{kind}, {CTYPES[source.kind]}>({value})"

    def in_32_bits(self, node: Expr) -> bool:
        """True if an integer's range is known to fit into an int32."""
        if node.op in ("load", "masked_load"):
            return self.buffers[node.attr.buffer].dtype.itemsize <= 4
        if node.op == "index":
            low, high = node.attr.bounds
            return low >= -(2**31) and high < 2**31
        return node.op == "narrow" or (node.op == "cast" and node.args[0].kind == "b")

    def expression(self, node: Expr) -> str:
        """C++ right-hand side of a value."""
        args = [self.name(a) for a in node.args]
        if node.op == "load":
            return load_text(self.buffers[node.attr.buffer], self.element(node.attr))
        if node.op == "masked_load":
            loaded = load_text(self.buffers[node.attr.buffer], self.element(node.attr))
            return f"{args[0]} ? {loaded} : {CTYPES[node.kind]}(0)"
        if node.op == "index":
            return self.index(node.attr)
        if node.op == "at_least":
            return f"{self.index(node.attr[0])} >= {node.attr[1]}"
        if node.op == "cast":
            return self.cast(node, args[0])
        if node.op in ("bin", "cmp"):
            return f"{args[0]} {node.attr} {args[1]}"
        if node.op == "where":
            return f"{args[0]} ? {args[1]} : {args[2]}"
        if node.op == "call":
            return f"af::{_FUNCTIONS.get(node.attr, node.attr)}({', '.join(args)})"
        if node.op == "checked":
            return f"af::checked({args[0]}, {node.attr[0]}, {node.attr[1]})"
        if node.op == "narrow":
            return _NARROWED.get(node.attr, f"int64_t({node.attr}_t({{0}}))").format(*args)
        return _SYMBOLS[node.op].format(*args)


_FUNCTIONS = {"round": "round_even", "fmod": "remainder_c", "remainder": "remainder_py"}
_NARROWED = {
    "float16": "af::from_half(af::to_half({0}))", "bfloat16": "af::from_bfloat16(af::to_bfloat16({0}))",
}  # fmt: skip
_SYMBOLS = {
    "neg": "-{0}", "not": "!{0}", "and": "{0} && {1}", "or": "{0} || {1}", "xor": "{0} != {1}",
    "bitand": "{0} & {1}", "bitor": "{0} | {1}", "bitxor": "{0} ^ {1}",
}  # fmt: skip


def write_values(
    writer: Writer, values: Values, roots: Sequence[Expr], loops: Sequence[Var]
) -> dict[int, list[Expr]]:
    """Write the values that the roots need and no loop changes; return the others by loop level."""
    values.levels.update({var: 1 + i for i, var in enumerate(loops)})
    known: dict[int, int] = {}
    by_level: dict[int, list[Expr]] = {}
    for node in values.order(roots):
        by_level.setdefault(values.level(node, known), []).append(node)
    for node in by_level.pop(0, []):
        values.define(writer, node)
    return by_level


def expensive(node: Expr) -> bool:
    """True if keeping a value is cheaper than computing it again."""
    return node.op == "call" and node.attr in EXPENSIVE


def staged_values(passes: Sequence[tuple[Pass, ...]], mode: str) -> dict[int, int]:
    """Values to keep in scratch: expression number to the pass that computes them.

    A value qualifies if two passes need it, if it varies along the columns, and if it contains an expensive
    function (`auto`) or anything beyond a load (`all`).
    """
    if mode == "off":
        return {}
    first: dict[int, int] = {}
    chosen: dict[int, int] = {}
    for number, segments in enumerate(passes):
        if len(segments) != 1 or not segments[0].loops:
            continue
        columns = set(segments[0].loops)
        weights: dict[int, bool] = {}
        nodes = list(walk(segments[0].roots))
        varying: dict[int, bool] = {}
        for node in nodes:
            own = any(v in columns for i in indices(node) for v in i.variables)
            varying[node.number] = own or any(varying[a.number] for a in node.args)
            heavy = expensive(node) or (mode == "all" and node.op not in ("load", "const", "index", "cast"))
            weights[node.number] = varying[node.number] and (
                heavy or any(weights[a.number] for a in node.args)
            )
        shared = {n.number for n in nodes if n.number in first and weights[n.number] and n.kind in "fd"}
        inner = {a.number for n in nodes if n.number in shared for a in n.args}
        chosen.update({n: first[n] for n in shared - inner if n not in chosen})
        for node in nodes:
            if weights[node.number]:
                first.setdefault(node.number, number)
    return chosen
