"""What the counters on a GPU see of CuPy, with stand-ins for it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from agentforge.languages.cupy import on_gpu
from agentforge.languages.cupy.sources import find_kernels


class JitKernel:
    """As much of a kernel of `cupyx.jit` as its users see."""

    launched: list[tuple[Any, ...]]

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, grid: Any, block: Any, args: tuple[Any, ...], shared_mem: int = 0) -> None:
        self.launched.append((grid, block, *args, shared_mem))

    def __getitem__(self, sizes: tuple[Any, Any]) -> Callable[..., None]:
        return lambda *args, **options: self(*sizes, args, **options)


@pytest.fixture
def jit(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A `cupyx.jit` beside a CuPy that has nothing else."""
    cupy, cupyx, jit = (ModuleType(name) for name in ("cupy", "cupyx", "cupyx.jit"))
    for name in ("RawKernel", "RawModule", "ElementwiseKernel", "ReductionKernel", "fuse"):
        setattr(cupy, name, lambda *_: None)
    vars(jit)["rawkernel"] = lambda *, mode="cuda", device=False: JitKernel
    vars(cupyx)["jit"] = jit
    for module in (cupy, cupyx, jit):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(on_gpu, "_calls", Counter())
    monkeypatch.setattr(JitKernel, "launched", [], raising=False)
    return jit


@pytest.mark.parametrize("run", [True, False])
def test_kernels_of_cupyx_jit_are_counted(jit: Any, run: bool) -> None:
    on_gpu.install(run)

    @jit.rawkernel(device=True)
    def twice(value: Any) -> Any:
        return 2 * value

    @jit.rawkernel()
    def scale(x: Any, out: Any) -> None:
        out[0] = twice(x[0])

    assert type(twice) is JitKernel, "kernels call it, so it must be what CuPy expects"
    scale((1,), (32,), ("x", "out"))
    scale[1, 32]("x", "out", shared_mem=8)
    assert on_gpu.calls() == {"scale": 2}
    every = [((1,), (32,), "x", "out", 0), (1, 32, "x", "out", 8)]
    assert JitKernel.launched == (every if run else [])
    assert scale.function.__name__ == "scale"


def test_kernels_of_cupyx_jit_are_found() -> None:
    text = "from cupyx import jit\n\n@jit.rawkernel()\ndef scale(x): ...\n"
    found = find_kernels({"model_new.py": text})
    assert "scale" in found.names and "needs a GPU" in found.unsupported
