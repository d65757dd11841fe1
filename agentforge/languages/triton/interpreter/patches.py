"""Correct differences between Triton's interpreter and its compiler: types of comparisons, rounding to 8
bits.

Reductions and scans with user functions work on whole blocks.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
import torch

from .fake_cuda import Unsimulated

_LARGEST = {"fp8e4nv": 448.0, "fp8e5": 57344.0}
"""Larger values (infinity too) are rounded to it, as on GPUs."""
_BRANCHES = (ast.If, ast.IfExp, ast.While, ast.BoolOp)


def install(interpreter: Any, tl: Any) -> None:
    """Patch the interpreter's module."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    plain_binary = builder.binary_op

    def binary(self: Any, left: Any, right: Any, operation: Any) -> Any:
        # The interpreter marks an integer comparison's result as integer, which is then refused as a mask.
        found = plain_binary(self, left, right, operation)
        return handle(found.data, tl.int1) if found.data.dtype == np.bool_ else found

    def absent(what: str) -> Callable[..., Any]:
        def operation(*_: Any, **__: Any) -> Any:
            raise Unsimulated(f"{what} cannot be simulated without a GPU")

        return operation

    builder.binary_op = binary
    builder.create_inline_asm = absent("inline assembly")
    builder.create_extern_elementwise = absent("a function of a foreign library")
    _install_language(interpreter, tl)
    _install_conversions(interpreter, tl)
    _install_combinations(interpreter, tl)


def _install_language(interpreter: Any, tl: Any) -> None:
    """Let kernels use the interpreter's functions, patched once per launch instead of at every call."""
    plain, scope_type = interpreter._patch_lang, interpreter._LangPatchScope
    both = FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})
    patched = False

    class Scope(scope_type):  # type: ignore[misc,valid-type]
        def restore(self) -> None:
            nonlocal patched
            patched = False
            super().restore()

    def patch(fn: Any) -> Any:
        nonlocal patched
        if patched:
            return scope_type()
        scope = Scope()
        scope._changes = plain(both)._changes
        # Older Triton converts one-element arrays to int, which numpy no longer allows.
        scope.set_attr(tl.tensor, "__index__", lambda self: int(self.handle.data.item()))
        patched = True
        return scope

    interpreter._patch_lang = patch


def imported_builtins(names: dict[str, Any], interpreter: Any, tl: Any) -> None:
    """Let a kernel call functions that its module imported by name from Triton's language (`from ... import
    exp`).
    """

    def bound(member: Any) -> Any:
        return lambda *args, **kwargs: member(
            *args, **{**kwargs, "_semantic": interpreter.interpreter_semantic}
        )

    for name, member in list(names.items()):
        if tl.core.is_builtin(member):
            names[name] = bound(member)


def _install_conversions(interpreter: Any, tl: Any) -> None:
    kinds = {
        tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2, tl.float16: torch.float16,
        tl.float32: torch.float32, tl.float64: torch.float64,
    }  # fmt: skip
    plain = interpreter._convert_float

    def convert(data: np.ndarray, source: Any, target: Any, rounding: Any) -> np.ndarray:
        if source not in kinds or target not in kinds or str(rounding).endswith("RTZ"):
            return np.asarray(plain(data, source, target, rounding))
        values = torch.from_numpy(np.array(data)).view(kinds[source])
        if target.name in _LARGEST:
            values = values.float().clamp(-_LARGEST[target.name], _LARGEST[target.name])
        bits = getattr(torch, f"uint{target.primitive_bitwidth}")
        return np.asarray(values.to(kinds[target]).view(bits).numpy())

    interpreter._convert_float = convert


def _install_combinations(interpreter: Any, tl: Any) -> None:
    reductions, scans = interpreter.ReduceOps, interpreter.ScanOps
    plain_reduce, plain_scan = reductions.generic_reduce, scans.generic_scan

    def combined(operation: Any, kinds: Sequence[Any], left: Blocks, right: Blocks) -> Blocks:
        both = [*zip(left, kinds, strict=True), *zip(right, kinds, strict=True)]
        found = operation.combine_fn.fn(*(operation.to_tensor(data, kind) for data, kind in both))
        found = found if isinstance(found, tuple) else (found,)
        shapes = (np.broadcast_to(_data(f), b.shape) for f, b in zip(found, left, strict=True))
        return [s.astype(b.dtype) for s, b in zip(shapes, left, strict=True)]

    def reduce(self: Any, operands: Any) -> Any:
        if branches(self.combine_fn.fn):
            return plain_reduce(self, operands)
        kinds = [g.dtype for g in operands]
        blocks = [g.handle.data if self.axis is not None else g.handle.data.reshape(-1) for g in operands]
        blocks = reduced(blocks, self.axis or 0, functools.partial(combined, self, kinds))
        if self.keep_dims and self.axis is None:
            blocks = [b.reshape([1] * len(g.shape)) for b, g in zip(blocks, operands, strict=True)]
        elif not self.keep_dims:
            blocks = [b.squeeze(self.axis or 0) for b in blocks]
        return [self.to_tensor(b if b.shape else b.item(), k) for b, k in zip(blocks, kinds, strict=True)]

    def scan(self: Any, operands: Any) -> Any:
        if branches(self.combine_fn.fn):
            return plain_scan(self, operands)
        kinds = [g.dtype for g in operands]
        blocks = scanned(
            [g.handle.data for g in operands], self.axis, functools.partial(combined, self, kinds)
        )
        return [self.to_tensor(b, k) for b, k in zip(blocks, kinds, strict=True)]

    reductions.generic_reduce, scans.generic_scan = reduce, scan


Blocks = list[np.ndarray]
Combine = Callable[[Blocks, Blocks], Blocks]


def reduced(blocks: Blocks, axis: int, combine: Combine) -> Blocks:
    """Combine neighbours along an axis, whose length is a power of two, until one is left.

    Args:
        axis: the axis; it stays, with length 1.
        combine: associative, need not be commutative.
    """
    while blocks[0].shape[axis] > 1:
        length = blocks[0].shape[axis]
        even, odd = ([b.take(range(first, length, 2), axis=axis) for b in blocks] for first in (0, 1))
        blocks = combine(even, odd)
    return blocks


def scanned(blocks: Blocks, axis: int, combine: Combine) -> Blocks:
    """All prefix combinations along an axis, in log2(length) steps."""
    length, step = blocks[0].shape[axis], 1
    place = np.arange(length).reshape(
        [-1 if i == axis % blocks[0].ndim else 1 for i in range(blocks[0].ndim)]
    )
    while step < length:
        earlier = [np.roll(b, step, axis=axis) for b in blocks]
        later = combine(earlier, blocks)
        blocks = [np.where(place >= step, new, old) for new, old in zip(later, blocks, strict=True)]
        step *= 2
    return blocks


@functools.cache
def branches(function: Callable[..., Any]) -> bool:
    """True if a function branches on a value, so that it must be called element by element."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):
        return True
    return any(isinstance(node, _BRANCHES) for node in ast.walk(tree))


def _data(value: Any) -> Any:
    handle = getattr(value, "handle", None)
    return np.asarray(value) if handle is None else handle.data
