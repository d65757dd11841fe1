"""What a policy that asks for own kernels takes for the work of others."""

from __future__ import annotations

import re
from pathlib import Path

from .elf import LOADERS, imported

_PRODUCTS = {"mm", "bmm", "addmm", "addbmm", "baddbmm", "mv", "addmv", "dot", "vdot", "matmul", "linear",
             "qlinear", "conv", "conv1d", "conv2d", "conv3d", "convolution", "qconv2d", "depthwise2d",
             "depthwise3d"}  # fmt: skip
"""Last words in the names of torch's products of matrices and of its convolutions."""
_PRODUCT_SPACES = ("aten", "mkl", "mkldnn", "onednn", "quantized")
_ENDINGS = re.compile(r"(?:_(?:transpose|forward|overrideable|pointwise|weight|prepack|out))*_?$")
_UNDISPATCHED = {"cpu", "native", "vml", "compositeexplicitautograd", "compositeimplicitautograd",
                 "compositeexplicitautogradnonfunctional"}  # fmt: skip
"""Namespaces of `at` whose functions compute without the dispatcher."""
_PROFILER = {"enableRecordFunction", "set_record_function_tls_", "removeCallback", "disableCallback",
             "clearCallbacks", "clearGlobalCallbacks", "clearThreadLocalCallbacks"}  # fmt: skip
"""Functions of `at` that keep operators from torch's profiler."""
_MEMORY = re.compile(r"^(?:empty|zeros|resize|view|as_strided|reshape|set_)")
_VECTOR_MATHS = "Sleef_"
"""Functions of a few numbers at a time, as those of libm."""
_GEMM = re.compile(r"gem[mv]|conv|dnnl|dot|num_threads")


def is_product(name: str) -> bool:
    """Whether a torch operator, such as `aten.addmm.default`, multiplies matrices or convolves."""
    space, _, rest = name.partition(".")
    words = _ENDINGS.sub("", rest.partition(".")[0]).split("_")
    return space in _PRODUCT_SPACES and words[-1] in _PRODUCTS


def foreign_functions(folder: Path, *, products: bool) -> list[str]:
    """Functions of others that a solution's C++ objects call past torch's dispatcher.

    Args:
        products: matrix products and convolutions are allowed.
    """
    return sorted(name for symbol in imported(folder) if (name := _foreign(symbol, products)))


def _foreign(symbol: str, products: bool) -> str:
    """The name of a function of others; empty if the symbol is none, or an allowed one."""
    if symbol in LOADERS:
        return symbol  # what they find may be anything
    if symbol.startswith("_Z"):
        parts = _parts(symbol)
        name = _past_dispatcher(parts)
        allowed = not name or _MEMORY.match(name) or (products and is_product(f"aten.{name}"))
    else:
        parts = [symbol]
        allowed = symbol.startswith(_VECTOR_MATHS)
    return "" if allowed or (products and _GEMM.search(parts[-1])) else "::".join(parts)


def _past_dispatcher(parts: list[str]) -> str:
    """What a C++ function of torch does unseen: an operator's name, or that of a function of the profiler."""
    if len(parts) == 2 and parts[0] == "at" and parts[1] in _PROFILER:
        return parts[1]
    if len(parts) > 2 and parts[0] == "at" and parts[1] in _UNDISPATCHED:
        return parts[-1]
    if len(parts) == 4 and parts[:2] == ["at", "_ops"] and parts[3] == "redispatch":
        return parts[2]
    return ""


def _parts(symbol: str) -> list[str]:
    """Namespaces and name of a mangled C++ function: `_ZN2at3cpu6mm_outE` is `at::cpu::mm_out`."""
    found: list[str] = []
    rest = symbol.removeprefix("_ZN")
    while rest != symbol and (digits := re.match(r"\d+", rest)):
        begin, length = digits.end(), int(digits[0][:6])
        found.append(rest[begin : begin + length])
        rest = rest[begin + length :]
    return found
