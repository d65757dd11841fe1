"""Named axes of the FlashInfer Trace schema, from the shapes of several workloads."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any

from ..definition import DType
from ..errors import UsageError
from ..workload import InputSpec, ScalarInput, TensorInput

_DTYPES = frozenset(DType) - {DType.FLOAT64, DType.COMPLEX64, DType.UINT8}
"""Element types that the schema has a name for."""


class Axes:
    """Names sizes: those that agree in every workload share an axis."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self._names: dict[tuple[int, ...], str] = {}

    def arguments(self, columns: Sequence[Sequence[InputSpec]]) -> dict[str, Any]:
        """Tensor specifications by name, from the arguments of each workload."""
        if len({tuple(a.name for a in column) for column in columns}) > 1:
            raise UsageError("the workloads do not have the same arguments: write a definition for each kind")
        return {row[0].name: self._spec(row) for row in zip(*columns, strict=True)}

    def _spec(self, row: tuple[InputSpec, ...]) -> dict[str, Any]:
        name = row[0].name
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UsageError(f"argument {name!r} is no Python name: rename it")
        tensors = [a for a in row if isinstance(a, TensorInput)]
        if not tensors:
            return {"shape": None, "dtype": _scalar_dtype(row)}
        if len(tensors) < len(row) or len({(t.dtype, len(t.shape)) for t in tensors}) > 1:
            raise UsageError(f"argument {name} has several ranks or dtypes: write a definition for each")
        if tensors[0].dtype not in _DTYPES:
            raise UsageError(f"argument {name} is {tensors[0].dtype.value}, which the schema has no name for")
        shape = [
            self._axis(name, i, sizes)
            for i, sizes in enumerate(zip(*(t.shape for t in tensors), strict=True))
        ]
        return {"shape": shape, "dtype": tensors[0].dtype.value}

    def _axis(self, argument: str, index: int, sizes: tuple[int, ...]) -> str:
        if sizes not in self._names:
            constant = len(set(sizes)) == 1
            name = f"d{sizes[0]}" if constant else f"{argument}_axis{index}"
            self._names[sizes] = name
            self.found[name] = {"type": "const", "value": sizes[0]} if constant else {"type": "var"}
        return self._names[sizes]


def _scalar_dtype(row: tuple[InputSpec, ...]) -> str:
    kinds = {type(a.value) for a in row if isinstance(a, ScalarInput)}
    for kind, dtype in ((bool, "bool"), (int, "int64"), (float, "float32")):
        if kinds == {kind}:
            return dtype
    raise UsageError(f"argument {row[0].name} is no number, or of several kinds: bind it in the reference")
