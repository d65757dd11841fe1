"""`ElementwiseKernel` and `ReductionKernel`: the loops around the solution's expressions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import program
from .arrays import NotEmulated, as_array, ndarray, span_of
from .program import Program

_BLOCK = 128
_C_TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "int32": "int",
    "uint16": "unsigned short", "uint32": "unsigned int", "int64": "long long",
    "uint64": "unsigned long long", "float16": "__half", "float32": "float", "float64": "double",
}  # fmt: skip
_HEAD = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct af_Indexer { long long n; __device__ long long size() const { return n; } };
struct af_Halves {
    const __half* at;
    __device__ float operator[](long long i) const { return __half2float(at[i]); }
};
"""
_ELEMENTWISE = """extern "C" __global__ void {name}({parameters}long long n_) {{
    {types}
    const af_Indexer _ind{{n_}};
    const long long n = n_;
    {raw}
    {loop_prep};
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n_;
         i += (long long)blockDim.x * gridDim.x) {{
        {load}
        {operation};
        {store}
    }}
    {after_loop};
}}
"""
_REDUCTION = """#define REDUCE(a, b) ({reduce})
#define POST_MAP(a) ({post})
extern "C" __global__ void {name}({parameters}long long n_, long long reduced_) {{
    {types}
    typedef {reduce_type} _type_reduce;
    const af_Indexer _in_ind{{n_ * reduced_}}, _out_ind{{n_}};
    {raw}
    for (long long _i = blockIdx.x * (long long)blockDim.x + threadIdx.x; _i < n_;
         _i += (long long)blockDim.x * gridDim.x) {{
        _type_reduce _s = _type_reduce({identity});
        for (long long _j = 0; _j < reduced_; _j++) {{
            const long long i = _i * reduced_ + _j;
            {load_inputs}
            const _type_reduce _a = static_cast<_type_reduce>({mapped});
            _s = REDUCE(_s, _a);
        }}
        const long long i = _i;
        {load_outputs}
        POST_MAP(_s);
        {store}
    }}
}}
"""


class _Parameter(NamedTuple):
    raw: bool
    type: str
    """dtype, or one letter for any."""
    name: str


class _Bound(NamedTuple):
    """Arguments of one call."""

    inputs: list[np.ndarray[Any, Any]]
    outputs: list[np.ndarray[Any, Any] | None]
    types: dict[str, np.dtype[Any]]
    """dtype by type in the declarations."""


def _parameters(text: str) -> list[_Parameter]:
    found = []
    for part in filter(None, (p.split() for p in text.split(","))):
        words = [w for w in part if w not in ("raw", "const", "_non_atomic")]
        if len(words) != 2:
            raise ValueError(f"{' '.join(part)!r} is no parameter of CuPy: write a type and a name")
        found.append(_Parameter("raw" in part, words[0], words[1]))
    return found


class _Kernel:
    """What both kinds share: types of arguments, and one program per combination of types."""

    def __init__(
        self, in_params: str, out_params: str, name: str, preamble: str, options: Sequence[str]
    ) -> None:
        self._in, self._out = _parameters(in_params), _parameters(out_params)
        self.name = name
        self._preamble, self._options = preamble, options
        self._programs: dict[tuple[str, ...], Program] = {}

    def _bind(self, args: Sequence[Any], outputs: Sequence[Any]) -> _Bound:
        """Arrays of the arguments.

        Raises:
            TypeError: a wrong number of arguments, or a dtype that the declaration does not allow.
        """
        if len(args) != len(self._in) or len(outputs) not in (0, len(self._out)):
            raise TypeError(f"{self.name} takes {len(self._in)} inputs, then no output or {len(self._out)}")
        types: dict[str, np.dtype[Any]] = {}
        outs = [None if o is None else as_array(o) for o in outputs] or [None] * len(self._out)
        given = [a if isinstance(a, int | float | bool) else as_array(a) for a in args]
        for parameter, value in zip((*self._in, *self._out), (*given, *outs), strict=True):
            if isinstance(value, np.ndarray):
                dtype = types.setdefault(parameter.type, _dtype(parameter.type) or value.dtype)
                if dtype != value.dtype:
                    raise TypeError(
                        f"{self.name}: {parameter.name} is {value.dtype}, and {dtype} is expected"
                    )
        for parameter, value in zip(self._in, given, strict=True):
            if not isinstance(value, np.ndarray):
                types.setdefault(parameter.type, _dtype(parameter.type) or np.asarray(value).dtype)
        for parameter in self._out:
            dtype_ = types.get(parameter.type) or _dtype(parameter.type)
            if dtype_ is None:
                raise ValueError(f"{self.name}: the type {parameter.type} of {parameter.name} is unknown")
            types[parameter.type] = dtype_
        for kind in types.values():
            if kind.name not in _C_TYPES:
                raise NotEmulated(f"{self.name} has arguments of {kind}, which the emulator lacks")
        arrays = [np.asarray(v, types[p.type]) for p, v in zip(self._in, given, strict=True)]
        return _Bound(arrays, outs, types)

    def _text(self, template: str, types: dict[str, np.dtype[Any]], **parts: str) -> str:
        def c(p: _Parameter) -> str:
            return _C_TYPES[types[p.type].name]

        pointers = [f"const {c(p)}* {p.name}_, " for p in self._in] + [
            f"{c(p)}* {p.name}_, " for p in self._out
        ]
        raw = [
            f"const af_Halves {p.name}{{{p.name}_}};"
            if c(p) == "__half"
            else f"const {c(p)}* const {p.name} = {p.name}_;"
            for p in self._in
            if p.raw
        ]
        raw += [f"{c(p)}* const {p.name} = {p.name}_;" for p in self._out if p.raw]
        ins = [f"const {_value(c(p))} {p.name} = {p.name}_[i];" for p in self._in if not p.raw]
        outs = [f"{_value(c(p))} {p.name} = {p.name}_[i];" for p in self._out if not p.raw]
        letters = [f"typedef {_value(_C_TYPES[t.name])} {n};" for n, t in types.items() if _dtype(n) is None]
        return template.format(
            name=self.name,
            parameters="".join(pointers),
            types=" ".join(letters),
            raw=" ".join(raw),
            load=" ".join([*ins, *outs]),
            load_inputs=" ".join(ins),
            load_outputs=" ".join(outs),
            store=" ".join(f"{p.name}_[i] = {p.name};" for p in self._out if not p.raw),
            **parts,
        )

    def _program(self, template: str, types: dict[str, np.dtype[Any]], **parts: str) -> Program:
        key = tuple(t.name for t in types.values())
        if key not in self._programs:
            code = f"{_HEAD}{self._preamble}\n{self._text(template, types, **parts)}"
            place = (f"{type(self).__name__} {self.name}", 1)
            self._programs[key] = Program(code, self._options, place=place)
        return self._programs[key]

    def _launch(
        self, source: Program, arrays: Sequence[np.ndarray[Any, Any]], count: int, *sizes: int
    ) -> None:
        if count:
            values = [ctypes.c_void_p(a.__array_interface__["data"][0]) for a in arrays]
            numbers = [ctypes.c_int64(n) for n in (count, *sizes)]
            grid = min(-(-count // _BLOCK), 2**31 - 1)
            source.launch(self.name, (grid,), (_BLOCK,), 0, [*values, *numbers], [span_of(a) for a in arrays])

    def _outputs(self, bound: _Bound, shape: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
        """Arrays to write; the caller's if it gave them.

        Raises:
            ValueError: a given one has another shape.
        """
        found: list[np.ndarray[Any, Any]] = []
        for parameter, given in zip(self._out, bound.outputs, strict=True):
            if given is None:
                found.append(np.zeros(shape, bound.types[parameter.type]).view(ndarray))
                continue
            if not parameter.raw and given.shape != shape:
                raise ValueError(f"{self.name}: {parameter.name} has shape {given.shape}, not {shape}")
            if not given.flags.c_contiguous:
                raise NotEmulated(f"{self.name} writes to an array that is not contiguous")
            found.append(given)
        return found


class ElementwiseKernel(_Kernel):
    """`cupy.ElementwiseKernel`."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(in_params, out_params, name, preamble, others.get("options", ()))
        self._operation, self._others = operation, others
        self._no_return, self._return_tuple = no_return, return_tuple

    def __call__(self, *args: Any, size: int | None = None, **_: Any) -> Any:
        """Run the operation on every element of the broadcast inputs."""
        program.calls[self.name] += 1
        bound = self._bind(args[: len(self._in)], args[len(self._in) :])
        cells = [a for p, a in zip(self._in, bound.inputs, strict=True) if not p.raw]
        given = [o for p, o in zip(self._out, bound.outputs, strict=True) if o is not None and not p.raw]
        if size is None and not cells and not given:
            raise ValueError(f"{self.name} has raw arguments only: pass size=")
        shape = (size,) if size is not None else np.broadcast_shapes(*(a.shape for a in (*cells, *given)))
        outputs = self._outputs(bound, shape)
        if program.settings()["run"]:
            inputs = [
                np.ascontiguousarray(a if p.raw else np.broadcast_to(a, shape))
                for p, a in zip(self._in, bound.inputs, strict=True)
            ]
            built = self._program(
                _ELEMENTWISE,
                bound.types,
                operation=self._operation,
                loop_prep=self._others.get("loop_prep", ""),
                after_loop=self._others.get("after_loop", ""),
            )
            self._launch(built, [*inputs, *outputs], int(np.prod(shape)))
        if self._no_return:
            return None
        return tuple(outputs) if self._return_tuple or len(outputs) != 1 else outputs[0]


class ReductionKernel(_Kernel):
    """`cupy.ReductionKernel`."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: Any,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: Sequence[str] = (),
    ) -> None:
        super().__init__(in_params, out_params, name, preamble, options)
        if identity is None or not str(identity).strip():
            raise NotEmulated(f"{name} has no identity, which the emulator needs")
        self._parts = {
            "mapped": map_expr,
            "reduce": reduce_expr,
            "post": post_map_expr,
            "identity": str(identity),
        }
        self._reduce_type = reduce_type

    def __call__(
        self, *args: Any, out: Any = None, axis: Any = None, keepdims: bool = False, **_: Any
    ) -> Any:
        """Reduce the broadcast inputs over `axis` (all axes by default)."""
        program.calls[self.name] += 1
        given = args[len(self._in) :] or (() if out is None else (out,))
        bound = self._bind(args[: len(self._in)], given)
        cells = [a for p, a in zip(self._in, bound.inputs, strict=True) if not p.raw]
        shape = np.broadcast_shapes(*(a.shape for a in cells))
        axes = range(len(shape)) if axis is None else [axis] if isinstance(axis, int) else axis
        reduced = sorted(a % max(len(shape), 1) for a in axes)
        kept = [i for i in range(len(shape)) if i not in reduced]
        inner = tuple(shape[i] for i in kept)
        result = tuple(1 if i in reduced else n for i, n in enumerate(shape)) if keepdims else inner
        outputs = self._outputs(bound, result)
        if program.settings()["run"]:
            inputs = [
                np.ascontiguousarray(a if p.raw else np.broadcast_to(a, shape).transpose(*kept, *reduced))
                for p, a in zip(self._in, bound.inputs, strict=True)
            ]
            first = _value(_C_TYPES[bound.types[self._out[0].type].name])
            built = self._program(
                _REDUCTION, bound.types, reduce_type=self._reduce_type or first, **self._parts
            )
            times = int(np.prod([shape[i] for i in reduced]))
            self._launch(built, [*inputs, *outputs], int(np.prod(inner)), times)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _dtype(name: str) -> np.dtype[Any] | None:
    """The dtype that a declaration names; None for a letter, which means any.

    Raises:
        TypeError: there is no such dtype.
    """
    return None if len(name) == 1 and name.isalpha() else np.dtype(name)


def _value(kind: str) -> str:
    """Type in which expressions compute; CuPy's float16 computes in float too."""
    return "float" if kind == "__half" else kind
