"""What our kernels compile to for an H100 at sizes that are timed, as far as speed shows there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentforge.languages.cuda import compilers
from agentforge.languages.cuda.compile import nvrtc
from agentforge.languages.cuda.compile.sass import _kernels, parse_cubin
from agentforge.languages.triton.language import triton_version

from .large import LARGE
from .machine_code import TARGET, memory_of

needs_triton = pytest.mark.skipif(not triton_version(), reason="Triton is not installed")
ROOT = Path(__file__).resolve().parents[2]
CUDA = ROOT / "knowledge_base" / "kernels" / "cuda"
PRODUCTS = {"matmul", "fused_mlp", "attention"}
DTYPE = "bf16"
PROCESSORS = 132
IN_FLIGHT = 40 << 10
"""Bytes that each processor must have on their way: 3.35 TB/s for 700 ns are 18 KB, were none ever late."""
SECOND = {"reduce_losses", "reduce_row", "reduce_column"}
"""Put together what a first launch left: next to nothing is read."""


def child(module: str, *arguments: str, given: str = "") -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.kernels.{module}", *arguments],
        input=given, capture_output=True, text=True, timeout=250, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


Found = dict[str, list[dict[str, Any]]]
"""By kernel file: of each launch, its grid and what `machine_code` says."""


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    return [case for case in child("child", "record") if case["case"].endswith(DTYPE)]


def compiled(cases: list[dict[str, Any]]) -> Found:
    asked = [(case["file"], launch) for case in cases for launch in case["launches"]]
    grids = [grid for case in cases for grid in case["programs"]]
    answers: Found = {}
    said = child("machine_code", given=json.dumps(asked))
    for (file, _), programs, answer in zip(asked, grids, said, strict=True):
        answers.setdefault(file, []).append({**answer, "programs": programs})
    return answers


@pytest.fixture(scope="module")
def found(cases: list[dict[str, Any]]) -> Found:
    return compiled([case for case in cases if case["file"] not in PRODUCTS])


@pytest.fixture(scope="module")
def products(cases: list[dict[str, Any]]) -> Found:
    return compiled([case for case in cases if case["file"] in PRODUCTS])


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize("name", sorted({file for file, _, _ in LARGE.values()} - PRODUCTS))
def test_memory_is_asked_for_widely_and_early(found: Found, name: str) -> None:
    first = [one for one in found[name] if one["programs"] >= PROCESSORS]
    assert first
    assert {one["kernel"] for one in found[name] if one not in first} <= SECOND
    for one in first:
        assert max(one["loads"]) == 128, one
        assert not one["spilled"], one
        assert one["processor_bytes"] >= IN_FLIGHT, one
        if name not in ("reduction", "cross_entropy"):
            assert max(one["stores"]) == 128, one


@needs_triton
@pytest.mark.parametrize("name", ["rmsnorm", "layernorm", "rotary", "pointwise", "reduction"])
def test_no_access_is_narrow(found: Found, name: str) -> None:
    """At sizes that are multiples of 16 bytes."""
    for one in found[name]:
        assert min(one["loads"]) == 128, one


@pytest.mark.slow
@needs_triton
def test_reductions_count_beyond_the_end_of_the_longest_dimension(cases: list[dict[str, Any]]) -> None:
    """A counter that wraps below 2^31 elements reads before the tensor."""
    (case,) = [case for case in cases if case["file"] == "reduction"]
    launches = [launch for launch in case["launches"] if "WIDE" in launch["constants"]]
    assert {launch["kernel"] for launch in launches} == {"reduce_piece", "reduce_column"}
    for wide, kind in ((False, "i32"), (True, "i64")):
        asked = [("reduction", {**x, "constants": {**x["constants"], "WIDE": wide}}) for x in launches]
        for one in child("machine_code", given=json.dumps(asked)):
            assert one["counters"] == [kind]


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PRODUCTS))
def test_products_use_hoppers_matrix_instructions(products: Found, name: str) -> None:
    for one in products[name]:
        assert one["tensor"] and one["copies"] and not one["spilled"], one
        assert max(one["stores"]) == 128, one


def cuda_cubin(name: str) -> bytes:
    compiler = compilers()
    if compiler is None or compiler.toolkit is None:
        pytest.skip("NVRTC is not installed")
    source = (CUDA / f"{name}.cu").read_text()
    made = nvrtc.Nvrtc(compiler.toolkit).compile(source, f"{name}.cu", TARGET, [f"--include-path={CUDA}"])
    assert made.cubin, made.log
    return made.cubin


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({path.stem for path in CUDA.glob("*.cu")} & PRODUCTS))
def test_cuda_products_copy_and_store_widely(name: str) -> None:
    """16 bytes an asynchronous copy, a store and a load of shared memory; 16-bit floats on tensor cores."""
    cubin = cuda_cubin(name)
    facts = {(fact.kernel, fact.name): fact.value for fact in parse_cubin(cubin)}
    for kernel, code in _kernels(cubin):
        found = memory_of(code)
        assert set(found["copies"]) == {128} and max(found["stores"]) == 128, (kernel, found)
        assert facts[kernel, "shared_load_bits"] == 128
        assert (facts[kernel, "tensor_core_instructions"] >= 32) == (not kernel.endswith("float")), kernel
        assert not facts[kernel, "local_memory_instructions"], kernel


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({path.stem for path in CUDA.glob("*.cu")} - PRODUCTS))
def test_cuda_asks_for_two_wide_accesses(name: str) -> None:
    kernels = {k: code for k, code in _kernels(cuda_cubin(name)) if "reduce_losses" not in k}
    for kernel, code in kernels.items():
        found = memory_of(code)
        assert found["thread_bytes"] >= 32 and max(found["loads"]) == 128, (kernel, found)
        if name in ("softmax", "norms", "rotary"):
            assert max(found["stores"]) == 128, (kernel, found)
