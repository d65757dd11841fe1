"""CUDA's math library for Triton's interpreter, which has none: the common functions by numpy and scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "nearbyint": np.rint, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt,
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power, "fmod": np.fmod, "hypot": np.hypot,
    "copysign": np.copysign, "fma": lambda x, y, z: x * y + z, "div_rn": np.divide, "mul_rn": np.multiply,
    "add_rn": np.add, "sub_rn": np.subtract, "fast_expf": np.exp, "fast_logf": np.log,
    "fast_log2f": np.log2, "fast_log10f": np.log10, "fast_sinf": np.sin, "fast_cosf": np.cos,
    "fast_tanf": np.tan, "fast_tanhf": np.tanh, "fast_powf": np.power, "fast_dividef": np.divide,
    "fast_exp10f": lambda x: np.power(10.0, x),
}  # fmt: skip
_SPECIAL = ("erf", "erfc", "erfinv", "j0", "j1", "y0", "y1")
_TESTS: dict[str, Callable[..., Any]] = {"isnan": np.isnan, "isinf": np.isinf, "signbit": np.signbit}


def install(interpreter: Any, tl: Any, module: Any) -> None:
    """Give the functions of `triton.language.extra.libdevice` bodies.

    Those that are not listed here raise NotImplementedError: the interpreter's own stand-ins return
    nothing without a word.
    """

    def to_tensors(args: tuple[Any, ...]) -> list[Any]:
        semantic = interpreter.interpreter_semantic
        tensors = [semantic.to_tensor(a) for a in args]
        for i in range(1, len(tensors)):
            tensors[0], tensors[i] = semantic.broadcast_impl_value(tensors[0], tensors[i])
        return tensors

    def body(function: Callable[..., Any], result: Any = None) -> Callable[..., Any]:
        def call(*args: Any, **_: Any) -> Any:
            tensors = to_tensors(args)
            kind = result or tensors[0].dtype
            with np.errstate(all="ignore"):
                data = np.asarray(function(*[t.handle.data for t in tensors]))
            handle = interpreter.TensorHandle(data.astype(interpreter._get_np_dtype(kind)), kind)
            shape = tensors[0].type
            return tl.tensor(handle, tl.block_type(kind, shape.shape) if shape.is_block() else kind)

        return call

    def absent(name: str) -> Callable[..., Any]:
        def call(*_: Any, **__: Any) -> Any:
            raise NotImplementedError(f"libdevice.{name} cannot be simulated without a GPU")

        return call

    interpreter.InterpreterBuilder.create_erf = lambda self, arg: self.unary_op(arg, _special("erf"))
    for name in [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]:
        if name in _FUNCTIONS:
            setattr(module, name, body(_FUNCTIONS[name]))
        elif name in _TESTS:
            setattr(module, name, body(_TESTS[name], tl.int32))
        elif name in _SPECIAL:
            setattr(module, name, body(_special(name)))
        else:
            setattr(module, name, absent(name))


def _special(name: str) -> Callable[..., Any]:
    def call(value: np.ndarray) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(value)

    return call
