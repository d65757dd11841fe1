"""A sequential function becomes a reference that runs it: sizes, inputs that are read, float64, refusals."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from agentforge.frontends.sequential import Sequential, in_double, read_sequential, reference
from agentforge.schema import TargetError

SCALE = """\
#include <cmath>

void scale(const float* x, float* out, int n) {
    for (int i = 0; i < n; i++) out[i] = sqrtf(x[i] * x[i]) * 0.1f;
}
"""
UPDATE = """\
void update(const double* step, double* state, double* peak, long n) {
    for (long i = 0; i < n; i++) {
        state[i] += step[i];
        peak[i] = state[i] > 1 ? 1 : state[i];
    }
}
"""
DOT = """\
double dot(const float* a, const float* b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}
"""
NAMES = """\
void names(const float* in, const float* self, float* in_, float* lib, int n) {
    for (int i = 0; i < n; i++) {
        in_[i] = in[i] * 2;
        lib[i] = in_[i] + self[i];
    }
}
"""


def read(folder: Path, source: str, name: str, **sizes: tuple[int, ...]) -> Sequential:
    path = folder / f"{name}.cpp"
    path.write_text(source)
    return read_sequential(path, sizes)


def module(found: Sequential) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "reference"}
    exec(reference(found), names)
    return names


@pytest.mark.slow
def test_the_reference_runs_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    found = read(tmp_path, SCALE, "scale", n=(100,))
    assert [p.name for p in found.inputs] == ["x"]
    names = module(found)
    (x,) = names["get_inputs"]()
    assert x.shape == (100,)
    assert torch.allclose(names["Model"]()(x), x.abs() * 0.1, rtol=1e-6)
    assert not list(scratch.glob("sequential-*"))


@pytest.mark.slow
def test_in_float64_the_same_source_is_more_exact(tmp_path: Path) -> None:
    names = module(read(tmp_path, SCALE, "scale", n=(100,)))
    x = torch.randn(100, dtype=torch.float64)
    out = names["Model"]()(x)
    assert out.dtype == torch.float64
    assert torch.allclose(out, x.abs() * float(torch.tensor(0.1)), rtol=1e-12)
    assert "#define float double" in in_double(SCALE)


@pytest.mark.slow
def test_what_is_read_before_it_is_written_is_an_input_too_and_is_not_changed(tmp_path: Path) -> None:
    found = read(tmp_path, UPDATE, "update", n=(50,))
    assert [p.name for p in found.inputs] == ["step", "state"]
    assert [p.name for p in found.outputs] == ["state", "peak"]
    names = module(found)
    step, state = names["get_inputs"]()
    before = state.clone()
    after, peak = names["Model"]()(step, state)
    assert torch.equal(state, before)
    assert torch.allclose(after, before + step)
    assert torch.allclose(peak, (before + step).clamp(max=1))


@pytest.mark.slow
def test_parameters_may_have_names_that_python_uses_itself(tmp_path: Path) -> None:
    found = read(tmp_path, NAMES, "names", n=(100,))
    names = module(found)
    x, y = names["get_inputs"]()
    twice, total = names["Model"]()(x, y)
    assert torch.allclose(twice, 2 * x)
    assert torch.allclose(total, 2 * x + y)
    assert [*map(found.python_name, found.function.parameters)] == ["in__", "self_", "in_", "lib_", "n"]


@pytest.mark.slow
def test_a_returned_number_is_an_output(tmp_path: Path) -> None:
    names = module(read(tmp_path, DOT, "dot", n=(64,)))
    a, b = names["get_inputs"]()
    assert torch.allclose(names["Model"]()(a, b), (a * b).double().sum(), rtol=1e-5)


@pytest.mark.slow
def test_other_shapes_and_traced_tensors_are_refused_and_not_read_beyond(tmp_path: Path) -> None:
    names = module(read(tmp_path, SCALE, "scale", n=(100,)))
    with pytest.raises(ValueError, match="the sizes are those of x"):
        names["Model"]()(torch.randn(97))
    with pytest.raises(TypeError, match="real tensors"):
        names["Model"]()(torch.nn.Parameter(torch.randn(100)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "sizes", "says"),
    [
        (SCALE, {"m": (3,)}, "no parameter 'm'"),
        ("void f(const float* x, float* o, int a, int b) { }", {}, "has several sizes"),
        ("void f(const float* x, float* o, int a, int b) { }", {"a": (2,), "b": (3,)}, "how many elements"),
        ("void f(const float* x, float* o, int n) { o[0] = y; }", {}, "cannot be run"),
    ],
)
def test_what_is_missing_is_asked_for(
    tmp_path: Path, source: str, sizes: dict[str, tuple[int, ...]], says: str
) -> None:
    with pytest.raises(TargetError, match=says):
        read(tmp_path, source, "f", **sizes)
