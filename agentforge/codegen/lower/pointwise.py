"""Pointwise ATen operators as expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from agentforge.schema import CannotCode

from ..ir.expr import Arena, Expr, constant
from ..ir.lazy import NARROW, kind_of

_UNARY = {
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp",
    "exp2", "expm1", "floor", "log", "log10", "log1p", "log2", "neg", "reciprocal", "relu", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
}  # fmt: skip
_FLOAT_RESULT = _UNARY - {"abs", "ceil", "floor", "neg", "relu", "sign", "trunc"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BINARY = {"add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmod", "remainder", "atan2"}
_LOGIC = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
_BITS = {"bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor"}
_SHIFTS = {
    "__lshift__": "<<", "bitwise_left_shift": "<<", "__rshift__": ">>", "bitwise_right_shift": ">>",
}  # fmt: skip

STEPS = frozenset({"ceil", "floor", "fmod", "remainder", "round", "trunc"})
"""Functions with steps at integers."""
HALVES = (torch.float16, torch.bfloat16)
"""Types of floating-point numbers whose arithmetic is fp32."""

Builder = Callable[[Arena, list[Expr], str, dict[str, Any]], Expr]
"""Arguments: arena, operands in the operation's kind, that kind, keyword arguments."""


def is_pointwise(name: str) -> bool:
    """True if `build_pointwise` supports the operator (its name without overload)."""
    return (
        name in _UNARY
        or name in _COMPARE
        or name in _BINARY
        or name in _SPECIAL
        or name in _LOGIC
        or name in _BITS
        or name in _SHIFTS
    )


def operand_dtype(operands: Sequence[Any], result: torch.dtype, name: str) -> torch.dtype:
    """Type that an operator computes in, by torch's promotion of tensors and numbers."""
    if name in _LOGIC or name == "logical_not":
        return torch.bool
    if name in _COMPARE:
        return torch.result_type(operands[0], operands[1])
    return result


def rounded(number: float, dtype: torch.dtype) -> float:
    """The value of a number as an element of a dtype."""
    return float(torch.tensor(number, dtype=torch.float64).to(dtype))


def element(arena: Arena, value: Expr, dtype: torch.dtype) -> Expr:
    """A number as an element of a tensor of a dtype: it wraps, or is rounded if it is a constant."""
    if dtype in NARROW:
        return arena.narrow(value, str(dtype).removeprefix("torch."))
    if dtype in HALVES and value.op == "const":
        return arena.const(rounded(constant(value), dtype), value.kind)
    return value


def operand(arena: Arena, name: str, value: Expr, dtype: torch.dtype, many: bool) -> Expr:
    """An operand of an operator that computes in a dtype.

    A number, or a tensor without dimensions, becomes an element of the dtype, but arithmetic of half types
    reads it in single precision. Tensors with dimensions (`many`) have no wider type.
    """
    value = arena.cast(value, kind_of(dtype))
    return value if many or (dtype in HALVES and name not in _COMPARE) else element(arena, value, dtype)


def build_pointwise(arena: Arena, name: str, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    """Build one operator on operands of one kind.

    Raises:
        CannotCode: the operator is not supported for this kind of number.
    """
    if name in _COMPARE:
        return compare(arena, _COMPARE[name], values[0], values[1])
    if name in _LOGIC:
        return arena.make(_LOGIC[name], tuple(values), None, "b")
    if name in _BITS:
        if kind not in "ib":
            raise CannotCode(f"{name} on floating-point numbers is not supported")
        return arena.make(_BITS[name], tuple(values), None, kind)
    if name in _SHIFTS:
        return _shift(arena, name, values, kind)
    if name in _SPECIAL:
        return _SPECIAL[name](arena, values, kind, extra)
    if name in _UNARY:
        if name in _FLOAT_RESULT and kind not in "fd":
            raise CannotCode(f"{name} on numbers of kind {kind} is not supported")
        return unary(arena, name, values[0])
    return _binary(arena, name, values, kind, extra)


def compare(arena: Arena, operator: str, a: Expr, b: Expr) -> Expr:
    """A comparison of two operands of one kind."""
    return arena.make("cmp", (a, b), operator, "b")


def unary(arena: Arena, name: str, a: Expr) -> Expr:
    """A function of one operand."""
    if name == "neg":
        return arena.make("neg", (a,), None, a.kind)
    return arena.make("call", (a,), name, a.kind)


def binary(arena: Arena, operator: str, a: Expr, b: Expr) -> Expr:
    """`+ - * / << >>` on two operands of one kind."""
    return arena.make("bin", (a, b), operator, a.kind)


def _scaled(arena: Arena, value: Expr, alpha: Any, kind: str) -> Expr:
    if alpha in (None, 1):
        return value
    return binary(arena, "*", value, arena.const(alpha, kind))


def _binary(arena: Arena, name: str, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    a, b = values
    if name == "add":
        b = _scaled(arena, b, extra.get("alpha"), kind)
        if kind == "b":
            return arena.make("or", (a, b), None, "b")
        return binary(arena, "+", a, b)
    if name == "sub":
        return binary(arena, "-", a, _scaled(arena, b, extra.get("alpha"), kind))
    if name == "mul":
        return arena.make("and", (a, b), None, "b") if kind == "b" else binary(arena, "*", a, b)
    if name == "div":
        return _divide(arena, a, b, kind, extra.get("rounding_mode"))
    if name == "pow":
        return _power(arena, a, b, kind)
    if name in ("fmod", "remainder"):
        _refuse_zero(b)
    if kind == "b" and name in ("maximum", "minimum"):
        return arena.make("or" if name == "maximum" else "and", (a, b), None, "b")
    return arena.make("call", (a, b), name, kind)


def _divide(arena: Arena, a: Expr, b: Expr, kind: str, rounding: str | None) -> Expr:
    if kind in "fd":
        if rounding == "floor":
            raise CannotCode("the floor of a quotient of floating-point numbers is not supported")
        quotient = binary(arena, "/", a, b)
        return quotient if rounding is None else unary(arena, rounding, quotient)
    _refuse_zero(b)
    if rounding == "floor":
        return arena.make("call", (a, b), "floor_divide", kind)
    return binary(arena, "/", a, b)


def _shift(arena: Arena, name: str, values: list[Expr], kind: str) -> Expr:
    """A shift by a constant: 64 bits, narrowed as each result is, have every width's result."""
    a, b = values
    if kind != "i" or b.op != "const" or not 0 <= constant(b) < 64:
        raise CannotCode(f"{name} other than of integers by a constant below 64 is not supported")
    return binary(arena, _SHIFTS[name], a, b)


def _refuse_zero(divisor: Expr) -> None:
    """Refuse an integer divisor that may be zero: torch raises, but a processor ends the process."""
    if divisor.kind not in "fd" and (divisor.op != "const" or not constant(divisor)):
        raise CannotCode("division of integers by values that may be zero is not supported")


def _power(arena: Arena, a: Expr, b: Expr, kind: str) -> Expr:
    exponent = float(str(b.attr)) if b.op == "const" else None
    if exponent is not None and exponent in (1.0, 2.0, 3.0, 4.0):
        square = binary(arena, "*", a, a)
        by = {
            1.0: a,
            2.0: square,
            3.0: binary(arena, "*", square, a),
            4.0: binary(arena, "*", square, square),
        }
        return by[exponent]
    if exponent == 0.5 and kind in "fd":
        return unary(arena, "sqrt", a)
    if exponent == -0.5 and kind in "fd":
        return unary(arena, "rsqrt", a)
    if exponent == -1.0 and kind in "fd":
        return unary(arena, "reciprocal", a)
    if kind not in "fd":
        raise CannotCode("integer power with a general exponent is not supported")
    return arena.make("call", (a, b), "pow", kind)


def _gelu(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    x = values[0]
    half = arena.const(0.5, kind)
    if extra.get("approximate", "none") == "tanh":
        cube = binary(arena, "*", binary(arena, "*", x, x), x)
        inner = binary(arena, "+", x, binary(arena, "*", arena.const(0.044715, kind), cube))
        # 0.5 (1 + tanh u) equals sigmoid(2 u): one exponential, no cancellation
        twice = binary(arena, "*", inner, arena.const(2 * math.sqrt(2 / math.pi), kind))
        return binary(arena, "*", x, unary(arena, "sigmoid", twice))
    root = binary(arena, "*", x, arena.const(math.sqrt(0.5), kind))
    tail = binary(arena, "+", arena.const(1.0, kind), unary(arena, "erf", root))
    return binary(arena, "*", binary(arena, "*", half, x), tail)


def _silu(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    return binary(arena, "*", values[0], unary(arena, "sigmoid", values[0]))


def _leaky_relu(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    x = values[0]
    slope = values[1] if len(values) > 1 else arena.const(extra.get("negative_slope", 0.01), kind)
    return arena.where(compare(arena, ">", x, arena.const(0, kind)), x, binary(arena, "*", x, slope))


def _elu(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    x, *rest = values
    one = arena.const(1.0, kind)
    alpha, scale, input_scale = [*rest, *([one] * (3 - len(rest)))]
    negative = unary(arena, "expm1", binary(arena, "*", x, input_scale))
    negative = binary(arena, "*", binary(arena, "*", negative, alpha), scale)
    positive = binary(arena, "*", x, scale)
    return arena.where(compare(arena, ">", x, arena.const(0, kind)), positive, negative)


def _where(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    condition, a, b = values
    return arena.where(arena.cast(condition, "b"), a, b)


def _clamp(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    x = values[0]
    if extra.get("low") is not None:
        x = arena.make("call", (x, arena.cast(extra["low"], kind)), "maximum", kind)
    if extra.get("high") is not None:
        x = arena.make("call", (x, arena.cast(extra["high"], kind)), "minimum", kind)
    return x


def _logical_not(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    return arena.negate(arena.cast(values[0], "b"))


def _bitwise_not(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    if kind == "b":
        return arena.negate(values[0])
    return arena.make("call", (values[0],), "bitwise_not", kind)


def _isnan(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    return arena.make("call", (values[0],), "isnan", "b")


def _isinf(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    return arena.make("call", (values[0],), "isinf", "b")


def _round(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    decimals = extra.get("decimals", 0)
    if decimals == 0:
        return unary(arena, "round", values[0])
    if abs(decimals) > 30:
        raise CannotCode(f"rounding to {decimals} decimals is not supported")
    power = arena.const(10.0 ** abs(decimals), kind)
    before, after = ("*", "/") if decimals > 0 else ("/", "*")
    return binary(arena, after, unary(arena, "round", binary(arena, before, values[0], power)), power)


def _same(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    return values[0]


def _softplus(arena: Arena, values: list[Expr], kind: str, extra: dict[str, Any]) -> Expr:
    x, *rest = values
    beta = rest[0] if rest else arena.const(1.0, kind)
    threshold = rest[1] if len(rest) > 1 else arena.const(20.0, kind)
    scaled = binary(arena, "*", x, beta)
    soft = binary(arena, "/", unary(arena, "log1p", unary(arena, "exp", scaled)), beta)
    return arena.where(compare(arena, ">", scaled, threshold), x, soft)


_SPECIAL: dict[str, Builder] = {
    "alias": _same, "bitwise_not": _bitwise_not, "clamp": _clamp, "clone": _same, "contiguous": _same,
    "detach": _same, "elu": _elu, "gelu": _gelu, "isinf": _isinf, "isnan": _isnan, "leaky_relu": _leaky_relu,
    "lift_fresh_copy": _same, "logical_not": _logical_not, "round": _round, "silu": _silu,
    "softplus": _softplus, "where": _where, "_to_copy": _same, "convert_element_type": _same,
}  # fmt: skip
