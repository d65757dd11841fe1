"""The CUDA C++ kernels that we bring: right in the emulator, compiled for three generations of GPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentforge.codegen.library import kernel_templates
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.cuda import compilers
from agentforge.languages.cuda.shipped.agentforge_cuda import parse_kernels
from agentforge.languages.cuda.source import launch_bounds

from .cuda_child import CASES

pytestmark = pytest.mark.skipif(
    compilers() is None or not compiler_version(), reason="needs NVRTC or nvcc, and a C++ compiler"
)
ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = {t.id: t for t in kernel_templates().values() if t.language == "cuda"}
PRODUCTS = {"cuda-matmul", "cuda-fused-mlp", "cuda-attention"}
FAST = {"cuda-softmax"}
_UNITS = 4.0
"""Allowed relative L2 error, in units of the dtype's epsilon."""


def kernel_of(name: str) -> str:
    return CASES[name][0] if name in CASES else name


def kind_of(kernel: str) -> tuple[bool, bool]:
    return kernel in FAST, kernel in PRODUCTS


def names(every: Iterable[str]) -> list[Any]:
    """Kernels or cases as parameters; all but one take a while to compile and are slow."""
    return [pytest.param(name, marks=() if kernel_of(name) in FAST else pytest.mark.slow) for name in every]


Said = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    """What the child says of a kernel or case: a group is built at the first question about one of it."""

    @cache
    def group(kind: tuple[bool, bool]) -> dict[str, dict[str, Any]]:
        kernels = [name for name in TEMPLATES if kind_of(name) == kind]
        folder = str(tmp_path_factory.mktemp("built"))
        done = subprocess.run(
            [sys.executable, "-m", "tests.kernels.cuda_child", folder, *kernels],
            capture_output=True, text=True, timeout=250, cwd=ROOT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        lines = map(json.loads, done.stdout.splitlines())
        return {line.get("case", line.get("kernel")): line for line in lines}

    return lambda name: group(kind_of(kernel_of(name)))[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", names(CASES))
def test_kernel_is_right(said: Said, name: str) -> None:
    found = said(name)
    assert "raised" not in found, found["raised"]
    assert all(error <= _UNITS for error in found["errors"]), found["errors"]


@pytest.mark.parametrize("name", names(TEMPLATES))
def test_compiles_for_every_target(said: Said, name: str) -> None:
    found = said(name)
    assert found["ok"], found["log"]
    source = next(f.content for f in TEMPLATES[name].files if f.path.endswith(".cu"))
    kernels = set(parse_kernels(source))
    assert kernels and {(u["kernel"], u["target"]) for u in found["resources"]} == {
        (kernel, target) for kernel in kernels for target in ("sm_80", "sm_90", "sm_100")
    }
    threads = launch_bounds(source)
    for usage in found["resources"]:
        # A processor has 65536 registers: enough for a block of 1024 threads, or for two blocks of a product.
        most = 65536 // (2 * threads[usage["kernel"]] if name in PRODUCTS else 1024)
        assert 0 < usage["registers"] <= most and usage["spill_store_bytes"] == 0, usage
    if name in PRODUCTS:  # two blocks also fit into the shared memory of an A100, of which each loses 1 KiB
        assert 0 < 2 * (found["shared"] + 1024) <= 164 * 1024


def test_every_kernel_is_checked() -> None:
    assert {kernel for kernel, _, _ in CASES.values()} == set(TEMPLATES)
    for template in TEMPLATES.values():
        assert template.good_for and template.limits and template.parameters and template.files
        for function in template.functions:
            assert f"\ndef {function}(" in template.text
