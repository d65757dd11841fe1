"""Sizes of a definition's axes in one workload: constant, variable, or an expression over the others.

The expressions are those of SOL-ExecBench's schema: names, numbers, `+ - * / // % **`, signs and parentheses.
They are parsed into Python's syntax tree and computed node by node; nothing is ever evaluated as code.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from ..errors import NOT_PYTHON, UsageError

_MOST_CHARACTERS, _MOST_DEPTH, _MOST_POWER = 1000, 50, 64
_MOST = 1 << 62
"""Of any value on the way: a tensor has no more elements."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def axis_sizes(axes: Mapping[str, Any], bound: Mapping[str, Any]) -> dict[str, int]:
    """Sizes of all axes.

    Args:
        axes: the definition's, by name: `{"type": "const", "value": 8}`, `{"type": "var"}` or
            `{"type": "expr", "expression": "M // 2"}`.
        bound: the workload's sizes of the variable axes.

    Raises:
        UsageError: a size is missing, negative or no integer, or an expression cannot be computed.
    """
    sizes: dict[str, int] = {}
    waiting: dict[str, str] = {}
    for name, axis in axes.items():
        if axis["type"] == "expr":
            waiting[name] = axis["expression"]
            continue
        size = axis["value"] if axis["type"] == "const" else bound.get(name)
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise UsageError(f"axis {name} has the size {size!r}: give it an integer that is not negative")
        sizes[name] = size
    while waiting:
        ready = [name for name, text in waiting.items() if names_in(text).isdisjoint(waiting)]
        if not ready:
            raise UsageError(f"the axes {', '.join(waiting)} depend on each other: give one of them a size")
        for name in ready:
            sizes[name] = evaluate(waiting.pop(name), sizes)
    return sizes


def evaluate(expression: str, sizes: Mapping[str, int]) -> int:
    """The value of an expression over sizes.

    Raises:
        UsageError: another kind of expression, an unknown name, or a value that is no size.
    """
    try:
        value = _value(_parsed(expression), sizes)
    except ZeroDivisionError as error:
        raise UsageError(f"the expression {expression!r} divides by zero: correct the sizes") from error
    if value.denominator != 1 or value < 0:
        raise UsageError(f"the expression {expression!r} gives {value}, which is no size: correct the sizes")
    return int(value)


def names_in(expression: str) -> set[str]:
    """Names of axes in an expression.

    Raises:
        UsageError: it cannot be parsed.
    """
    return {node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name)}


def _parsed(expression: str) -> ast.expr:
    try:
        if len(expression) > _MOST_CHARACTERS:
            raise ValueError("too long")
        return ast.parse(expression.strip(), mode="eval").body
    except NOT_PYTHON as error:
        raise UsageError(f"{expression[:80]!r} is no expression over axes: correct it") from error


def _value(node: ast.expr, sizes: Mapping[str, int], depth: int = 0) -> Fraction:
    if depth > _MOST_DEPTH:
        raise UsageError("an expression over axes is too deep: split it into several axes")
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        number = str(node.value)  # 0.1 is a tenth, not the nearest binary number
        return _limited(Fraction(number) if number not in ("inf", "nan") else Fraction(_MOST + 1))
    if isinstance(node, ast.Name):
        if node.id not in sizes:
            raise UsageError(f"an expression names the axis {node.id!r}, which has no size: give it one")
        return _limited(Fraction(sizes[node.id]))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return Fraction(_UNARY[type(node.op)](_value(node.operand, sizes, depth + 1)))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = (_value(side, sizes, depth + 1) for side in (node.left, node.right))
        if isinstance(node.op, ast.Pow) and not (right.denominator == 1 and abs(right) <= _MOST_POWER):
            raise UsageError(
                f"an expression over axes has the power {right}: at most {_MOST_POWER} is computed"
            )
        return _limited(Fraction(_BINARY[type(node.op)](left, right)))
    raise UsageError(
        f"an expression over axes has {ast.unparse(node)[:80]!r}: only + - * / // % ** are computed"
    )


def _limited(value: Fraction) -> Fraction:
    if abs(value) > _MOST or value.denominator > _MOST:
        raise UsageError("an expression over axes gives a number that is too large for a size: correct it")
    return value
