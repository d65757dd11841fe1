"""The common functions of CUDA's math library by numpy and scipy; Triton's interpreter has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .fake_cuda import Unsimulated

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
    "fast_exp10f": lambda x: np.power(10.0, x), "fdim": lambda x, y: np.maximum(x - y, 0),
    "remainder": lambda x, y: x - y * np.rint(x / y), "ldexp": np.ldexp, "scalbn": np.ldexp,
    "nextafter": np.nextafter, "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "round": lambda x: np.trunc(x) + np.where(np.abs(x - np.trunc(x)) >= 0.5, np.sign(x), 0),
    "saturatef": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)), "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x), "rcbrt": lambda x: 1 / np.cbrt(x),
    "rhypot": lambda x, y: 1 / np.hypot(x, y), "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    "fma_rn": lambda x, y, z: x * y + z, "sqrt_rn": np.sqrt, "rcp_rn": lambda x: 1 / x,
    "rsqrt_rn": lambda x: 1 / np.sqrt(x), "mulhi": lambda x, y: (x.astype(np.int64) * y) >> 32,
    "hadd": lambda x, y: (x.astype(np.int64) + y) >> 1,
    "rhadd": lambda x, y: (x.astype(np.int64) + y + 1) >> 1,
}  # fmt: skip
"""Functions by numpy; the result has the first argument's type."""
_SPECIAL = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "erfcinv": "erfcinv", "erfcx": "erfcx", "j0": "j0",
    "j1": "j1", "y0": "y0", "y1": "y1", "lgamma": "gammaln", "tgamma": "gamma", "normcdf": "ndtr",
    "normcdfinv": "ndtri", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1",
}  # fmt: skip
"""Functions by scipy."""
_TESTS: dict[str, Callable[..., Any]] = {
    "isnan": np.isnan, "isinf": np.isinf, "signbit": np.signbit, "finitef": np.isfinite,
    "isfinited": np.isfinite,
}  # fmt: skip
_ROUNDINGS = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}
_INTEGERS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
_BITS = {"float_as_int": "int32", "float_as_uint": "uint32", "double_as_longlong": "int64",
         "int_as_float": "float32", "uint_as_float": "float32", "longlong_as_double": "float64"}  # fmt: skip


def _conversions() -> dict[str, tuple[Callable[..., Any], str]]:
    """Functions whose result has another type than their argument, with that type's name."""
    found: dict[str, tuple[Callable[..., Any], str]] = {}
    for short, kind in _INTEGERS.items():
        for name, rounded in _ROUNDINGS.items():
            for source in ("float", "double"):
                found[f"{source}2{short}_{name}"] = (_saturated(rounded, kind), kind)
        found[f"{short}2float_rn"] = (np.asarray, "float32")
        found[f"{short}2double_rn"] = (np.asarray, "float64")
    for name, kind in _BITS.items():
        found[name] = (lambda x, kind=kind: np.ascontiguousarray(x).view(kind), kind)
    found["llrint"] = (_saturated(np.rint, "int64"), "int64")
    found["llround"] = (_saturated(_FUNCTIONS["round"], "int64"), "int64")
    found["ilogb"] = (_FUNCTIONS["logb"], "int32")
    found["popc"] = (lambda x: np.vectorize(lambda n: int(n).bit_count())(_unsigned(x)), "int32")
    found["clz"] = (
        lambda x: np.vectorize(lambda n: 8 * x.itemsize - int(n).bit_length())(_unsigned(x)),
        "int32",
    )
    found["ffs"] = (np.vectorize(lambda n: (int(n) & -int(n)).bit_length()), "int32")
    return found


def _unsigned(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(f"u{x.itemsize}")


def _saturated(rounded: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """Conversion to an integer as on a GPU: values out of range saturate, NaN becomes 0."""

    def convert(x: np.ndarray) -> np.ndarray:
        limits = np.iinfo(kind)
        whole = rounded(x.astype(np.float64))
        inside = np.where(np.isnan(whole) | (whole >= limits.max) | (whole <= limits.min), 0, whole)
        found = np.where(whole >= limits.max, limits.max, inside.astype(kind))
        return np.where(whole <= limits.min, limits.min, found).astype(kind)

    return convert


def install(interpreter: Any, tl: Any, module: Any) -> None:
    """Implement the functions of `triton.language.extra.libdevice`.

    Functions not listed here raise Unsimulated: the interpreter's own placeholders silently return nothing.
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
            raise Unsimulated(f"libdevice.{name} cannot be simulated without a GPU")

        return call

    conversions = _conversions()
    interpreter.InterpreterBuilder.create_erf = lambda self, arg: self.unary_op(arg, _special("erf"))
    for name in [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]:
        if name in _FUNCTIONS:
            setattr(module, name, body(_FUNCTIONS[name]))
        elif name in _TESTS:
            setattr(module, name, body(_TESTS[name], tl.int32))
        elif name in _SPECIAL:
            setattr(module, name, body(_special(_SPECIAL[name])))
        elif name in conversions:
            function, kind = conversions[name]
            setattr(module, name, body(function, getattr(tl, kind)))
        else:
            setattr(module, name, absent(name))


def _special(name: str) -> Callable[..., Any]:
    def call(value: np.ndarray) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(value)

    return call
