"""Triton files as people write them: they ask for a GPU, and use what the plain interpreter gets wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

HEAD = """
from agentforge.languages.triton.interpreter.install import install, recorder
install()
import torch, triton, triton.language as tl

def fails(launch, says):
    try:
        launch()
    except Exception as error:
        assert says in f"{type(error).__name__}: {error}", error
    else:
        raise AssertionError("nothing was raised")
"""
ON_THE_GPU = """
x = torch.randn(3, 4)
assert x.is_cuda and x.device.type == "cuda" and x.device == torch.device("cuda:0") and x.get_device() == 0
assert x.cuda() is x and torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
y = torch.zeros(5, device="cuda") + torch.ones(5, device=x.device) + torch.ones(5).to("cuda")
linear = torch.nn.Linear(4, 2, device="cuda").cuda()
assert linear(x.to(torch.device("cuda"))).shape == (3, 2)
with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()):
    torch.cuda.synchronize()
assert torch.cuda.get_device_properties(x.device).multi_processor_count == 132
assert torch.rand(2, generator=torch.Generator(device="cuda").manual_seed(3)).shape == (2,)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record(), end.record()
assert start.elapsed_time(end) > 0 and x.numpy().shape == (3, 4)
driver = triton.runtime.driver.active
assert driver.utils.get_device_properties(0)["multiprocessor_count"] == 132
torch.zeros(3, device=driver.get_active_torch_device())
graphed = lambda: torch.cuda.make_graphed_callables(linear, (x,))
for use in (torch.cuda.CUDAGraph, lambda: torch.cuda.graph(None), graphed):
    fails(use, "Unsimulated: a CUDA graph cannot be simulated")
assert not torch.cuda.is_current_stream_capturing()
with torch.cuda.nvtx.range("forward"):
    torch.cuda.nvtx.mark("here")
"""
AS_THE_COMPILER_READS_IT = """
from triton.language import constexpr as C
from triton.language.math import exp
from triton.language.extra.cuda import libdevice

@triton.jit
def kernel(x, o, m, n, eps, BM: "tl.constexpr", BN: C):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    for at in range(0, n, BN):
        cols = at.to(tl.int64) + tl.arange(0, BN)[None, :]
        inside = rows < m and cols < n
        v = tl.load(x + rows * n + cols, mask=inside, other=0.0)
        v = exp(v) + eps.to(tl.float32) + libdevice.llrint(v)
        tl.store(o + rows * n + cols, tl.where(not (rows < 2), v, 0.0), mask=inside)

x, o = torch.randn(7, 50), torch.empty(7, 50)
kernel[lambda meta: [2]](x, o, 7, 50, 0.5, BM=4, BN=16)
want = x.exp() + 0.5 + x.round()
want[:2] = 0
assert torch.allclose(o, want, atol=1e-5), (o - want).abs().max()

@triton.jit
def scalar_mask(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=tl.program_id(0) < n, other=0.0), mask=tl.program_id(0) < n)

o = torch.empty(64)
scalar_mask[(1,)](x, o, 1, B=64)
assert torch.equal(o, x.view(-1)[:64])
"""
NUMBERS = """
@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d

@triton.jit
def kernel(x, y, scanned, back, reduced, B: tl.constexpr):
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(scanned + at, tl.associative_scan((a, b), 1, affine)[1])
    tl.store(back + at, tl.associative_scan((a, b), 1, affine, reverse=True)[1])
    tl.store(reduced + tl.arange(0, B), tl.reduce((a, b), 0, affine)[1])

B = 16
x, y = torch.rand(B, B), torch.randn(B, B)
got = torch.empty(B, B), torch.empty(B, B), torch.empty(B)
kernel[(1,)](x, y, *got, B=B)
def walk(steps):
    h, seen = torch.zeros(B), []
    for a, b in steps:
        h = h * a + b
        seen.append(h)
    return seen
columns = [(x[:, i], y[:, i]) for i in range(B)]
assert torch.allclose(got[0], torch.stack(walk(columns), 1), atol=1e-5)
assert torch.allclose(got[1], torch.stack(walk(columns[::-1])[::-1], 1), atol=1e-5)
assert torch.allclose(got[2], walk(list(zip(x, y)))[-1], atol=1e-5)

@triton.jit
def narrow(x, o, B: tl.constexpr, TO: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i).to(TO).to(tl.float32))

for to, kind, most in ((tl.float8e4nv, torch.float8_e4m3fn, 448), (tl.float8e5, torch.float8_e5m2, 57344)):
    x, o = torch.randn(256) * torch.exp2(torch.arange(256) % 20 - 10.0), torch.empty(256)
    narrow[(1,)](x, o, B=256, TO=to)
    assert torch.equal(o, x.clamp(-most, most).to(kind).float())

@triton.jit
def gather(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(o + i % 4, tl.load(x + i))

x, o = torch.ones(64, dtype=torch.bfloat16), torch.zeros(4, dtype=torch.bfloat16)
gather[(1,)](x, o, B=64)
assert o.tolist() == [16.0] * 4
"""
TOGETHER = """
@triton.jit
def total(x, o, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o, tl.load(o) + tl.sum(tl.load(x + i), 0))

@triton.jit
def both(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i) + tl.program_id(0))

@triton.jit
def alike(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(x + i))

@triton.jit
def summed(x, o, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(o, tl.sum(tl.load(x + i), 0))

@triton.jit
def waits(lock):
    if tl.program_id(0) == 0:
        while tl.atomic_cas(lock, 1, 2) != 1:
            pass
    else:
        tl.atomic_xchg(lock, 1)

@triton.jit
def assembly(x, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x + i)], tl.int32, True, 1)
    tl.store(x + i, v)

x, o = torch.randn(64), torch.zeros(64)
fails(lambda: total[(2,)](x, o, B=32), "program 1 loads what program 0 stored")
fails(lambda: both[(2,)](x, o, B=32), "program 1 stores to an address that program 0 stored to")
alike[(2,)](x, o, B=32)
o.zero_()
summed[(2,)](x, o, B=32)
assert torch.allclose(o[0], x.sum(), atol=1e-5)
fails(lambda: waits[(2,)](torch.zeros(1, dtype=torch.int32)), "Unsimulated")
fails(lambda: assembly[(1,)](x.int(), B=64), "inline assembly cannot be simulated")
"""


@pytest.mark.parametrize(
    "script",
    [ON_THE_GPU, AS_THE_COMPILER_READS_IT, NUMBERS, pytest.param(TOGETHER, marks=pytest.mark.slow)],
    ids=["asks for a GPU", "as the compiler reads it", "numbers", "programs that meet"],
)
def test_in_the_interpreter(script: str, tmp_path: Path) -> None:
    """Run in its own process: kernels need a file, and installed patches stay."""
    file = tmp_path / "script.py"
    file.write_text(HEAD + script)
    done = subprocess.run(
        [sys.executable, str(file)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
