"""Generate, build and run kernels for a one-off torch function, and compare with torch."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from agentforge.codegen import Options, flags_of, generate
from agentforge.languages.cpp.shipped import agentforge_cpp as runtime
from agentforge.referee.comparison.tolerance import alternative, kinds, settled
from agentforge.schema import Definition, DType, SourceFile, TensorInput, Workload

SOURCE = """
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, {arguments}):
{body}


def get_inputs():
    return []


def get_init_inputs():
    return []
"""


def integers(low: int, high: int, *shape: int) -> torch.Tensor:
    return torch.randint(low, high, shape)


def problem(body: str, inputs: Sequence[torch.Tensor]) -> tuple[Definition, Workload]:
    names = [f"x{i}" for i in range(len(inputs))]
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    definition = Definition(
        name="test", op_type="other", reference=SOURCE.format(arguments=", ".join(names), body=lines)
    )
    specs = tuple(
        TensorInput(
            name=name,
            shape=tuple(t.shape),
            dtype=DType(str(t.dtype).removeprefix("torch.")),
            strides=None if t.is_contiguous() else t.stride(),
        )
        for name, t in zip(names, inputs, strict=True)
    )
    return definition, Workload(name="w", inputs=specs)


def build(body: str, inputs: Sequence[torch.Tensor], folder: Path, **knobs: Any) -> tuple[Any, Any]:
    """`ModelNew` and `Model` for a forward's body over x0, x1, ..."""
    definition, workload = problem(body, inputs)
    options = Options(threads=2, **knobs)
    new = load(generate(definition, (workload,), options), folder, flags_of(options))
    scope: dict[str, Any] = {}
    exec(definition.reference, scope)
    return new, scope["Model"]()


def load(files: Sequence[SourceFile], folder: Path, flags: Sequence[str] = ()) -> Any:
    """The `ModelNew` of generated C++ sources."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file.path).write_text(file.content)
    (folder / "solution.json").write_text(json.dumps({"language": "cpp", "flags": list(flags)}))
    sys.modules.setdefault("agentforge_cpp", runtime)
    spec = importlib.util.spec_from_file_location(f"generated_{abs(hash(folder))}", folder / "model_new.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelNew()


def widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def as_tuple(value: Any) -> tuple[torch.Tensor, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def compare(new: Any, reference: Any, inputs: Sequence[torch.Tensor], magnitude: float = 0.0) -> None:
    """Outputs agree in shape, dtype and special values with torch in their own dtype or in float64; errors
    stay near the reference's own.

    Args:
        magnitude: size of the intermediate sums, if the outputs cancel to much smaller values.
    """
    with torch.no_grad():
        got = as_tuple(new(*inputs))
        expected = as_tuple(reference(*inputs))
        exact = as_tuple(reference(*map(widened, inputs)))
    assert len(got) == len(expected)
    for number, (a, b, c) in enumerate(zip(got, expected, exact, strict=True)):
        where = f"output {number}"
        assert a.shape == b.shape, where
        assert a.dtype == b.dtype, where
        if not b.is_floating_point():
            assert torch.equal(a, b), where
            continue
        # What torch makes of an infinity depends on the processor: on AVX-512 its GELU of infinity is NaN.
        b = settled(a, b, alternative(b, c))
        assert torch.equal(kinds(a), kinds(b)), where
        finite = b.isfinite()
        scale = max(magnitude, float(c[finite].abs().max())) if finite.any() else 0.0
        own = float((b.double() - c)[finite].abs().max()) if finite.any() else 0.0
        error = float((a.double() - c)[finite].abs().max()) if finite.any() else 0.0
        allowed = 8 * own + 16 * torch.finfo(b.dtype).eps * scale
        assert error <= allowed, f"{where}: error {error:g}, allowed {allowed:g}"


def check(
    body: str, inputs: Sequence[torch.Tensor], folder: Path, magnitude: float = 0.0, **knobs: Any
) -> None:
    new, reference = build(body, inputs, folder, **knobs)
    compare(new, reference, inputs, magnitude)
