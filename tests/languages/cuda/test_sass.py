"""What machine code says of itself, held against NVIDIA's disassembler."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentforge.languages.cuda import compilers
from agentforge.languages.cuda.compile import nvrtc
from agentforge.languages.cuda.compile.sass import parse_cubin

_KERNELS = Path(__file__).parents[3] / "knowledge_base" / "kernels" / "cuda"
_MMA = """
extern "C" __global__ void products(const unsigned* a, float* d, int* e) {
    unsigned a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    int i0 = 0, i1 = 0, i2 = 0, i3 = 0;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(a1), "r"(a2));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};" : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(a1), "r"(a2));
    d[0] = c0 + c1 + c2 + c3;
    e[0] = i0 + i1 + i2 + i3;
}
extern "C" __global__ void widths(float4* x, uchar4* y, short* s, double2* z, unsigned char* c) {
    __shared__ float4 t[64];
    t[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = t[63 - threadIdx.x];
    y[threadIdx.x].x += 1;
    s[threadIdx.x] += 2;
    z[threadIdx.x].x *= 2;
    c[threadIdx.x] = c[threadIdx.x + 1];
}
extern "C" __global__ void local(float* x, int n, int k) {
    float t[64];
    for (int i = 0; i < 64; i++) t[i] = x[i * n];
    for (int i = 0; i < k; i++) t[(i * 7 + n) & 63] += t[(i * n) & 63];
    x[threadIdx.x] = t[k & 63];
}
"""
_HOPPER = """
extern "C" __global__ void warp_group(float* d, unsigned long long a, unsigned long long b) {
    float r[4];
    for (int i = 0; i < 4; i++) r[i] = d[i];
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    for (int i = 0; i < 4; i++) d[i] = r[i];
}
"""
_BLACKWELL = """
extern "C" __global__ void eight(unsigned* x) {
    unsigned a, b, c, d, e, f, g, h;
    x += threadIdx.x * 8;
    asm volatile("ld.global.v8.b32 {%0,%1,%2,%3,%4,%5,%6,%7},[%8];"
        : "=r"(a), "=r"(b), "=r"(c), "=r"(d), "=r"(e), "=r"(f), "=r"(g), "=r"(h) : "l"(x));
    asm volatile("st.global.v8.b32 [%8],{%0,%1,%2,%3,%4,%5,%6,%7};"
        :: "r"(a + 1), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h), "l"(x));
}
"""
_TENSOR = re.compile(r"(?:HMMA|IMMA|DMMA|BMMA|QMMA|HGMMA|IGMMA|QGMMA|BGMMA|UTC\w*MMA)$")
_PARTS = {"LDG": "global_load", "STG": "global_store", "LDS": "shared_load", "STS": "shared_store"}
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([\w$.]+?),")
_LINE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?P<name>[A-Z][\w.]*)")


def disassembler() -> str:
    """Path of nvdisasm; empty if it is not installed."""
    found = [p for entry in sys.path for p in Path(entry or ".").glob("nvidia/cu*/bin/nvdisasm")]
    return next((str(p) for p in found if os.access(p, os.X_OK)), "")


@cache
def cubin(source: str, target: str) -> bytes:
    compiler = compilers()
    if compiler is None or compiler.toolkit is None:
        pytest.skip("NVRTC is not installed")
    folder = f"--include-path={_KERNELS}"
    done = nvrtc.Nvrtc(compiler.toolkit).compile(source, "kernel.cu", target, [folder])
    assert done.cubin, done.log
    return done.cubin


def told(path: Path) -> dict[tuple[str, str], float]:
    """The same facts from nvdisasm's text."""
    done = subprocess.run(
        [disassembler(), "-c", "-ndf", str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    facts: dict[tuple[str, str], float] = {}
    kernel = ""
    for line in done.stdout.splitlines():
        if section := _SECTION.match(line):
            kernel = section[1]
            for name in ("instructions", "tensor_core_instructions", "local_memory_instructions"):
                facts[kernel, name] = 0
        match = _LINE.match(line)
        if match is None or match["name"].startswith("NOP"):
            continue
        root, *parts = match["name"].split(".")
        facts[kernel, "instructions"] += 1
        facts[kernel, "tensor_core_instructions"] += bool(_TENSOR.match(root))
        facts[kernel, "local_memory_instructions"] += root in ("LDL", "STL")
        if root in _PARTS:
            key = kernel, f"{_PARTS[root]}_bits"
            facts[key] = max(facts.get(key, 0), _bits(parts))
    return facts


def _bits(parts: list[str]) -> int:
    for part in parts:
        if part in ("64", "128", "256"):
            return int(part)
        if part in ("U8", "S8", "U16", "S16"):
            return int(part[1:])
    return 32


SOURCES = {
    **{p.stem: (p.read_text("utf-8"), ("sm_90",)) for p in sorted(_KERNELS.glob("*.cu"))},
    "products": (_MMA, ("sm_80", "sm_89", "sm_90", "sm_100", "sm_120")),
    "hopper": (_HOPPER, ("sm_90a",)),
    "blackwell": (_BLACKWELL, ("sm_100",)),
}

QUICK = {("products", "sm_90"), ("hopper", "sm_90a"), ("blackwell", "sm_100")}


@pytest.mark.skipif(not disassembler(), reason="nvdisasm is not installed")
@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=() if (name, target) in QUICK else pytest.mark.slow)
        for name, (_, targets) in SOURCES.items()
        for target in targets
    ],
)
def test_nvdisasm_says_the_same(name: str, target: str, tmp_path: Path) -> None:
    file = tmp_path / "kernel.cubin"
    file.write_bytes(cubin(SOURCES[name][0], target))
    found = {(m.kernel, m.name): m.value for m in parse_cubin(file.read_bytes())}
    assert found == told(file)


def test_facts_of_a_kernel() -> None:
    found = {(m.kernel, m.name): m.value for m in parse_cubin(cubin(_MMA, "sm_90"))}
    assert found["products", "tensor_core_instructions"] >= 2
    assert found["widths", "tensor_core_instructions"] == 0
    assert found["local", "local_memory_instructions"] > 0
    assert found["widths", "global_load_bits"] == 128
    assert found["widths", "shared_store_bits"] == 128


@given(st.binary(max_size=300))
def test_what_is_no_cubin_has_no_kernels(data: bytes) -> None:
    assert parse_cubin(data) == ()
    assert parse_cubin(b"\x7fELF\x02\x01" + data) == ()


@given(st.integers(0, 200), st.binary(min_size=1, max_size=8))
def test_a_damaged_cubin_raises_nothing(where: int, new: bytes) -> None:
    data = bytearray(cubin(_HOPPER, "sm_90a"))
    place = where * len(data) // 200
    data[place : place + len(new)] = new
    parse_cubin(bytes(data))
