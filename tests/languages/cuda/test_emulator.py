"""What kernels of other people use, in the emulator: groups of threads, odd declarations, headers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from agentforge.languages import BuildResult, languages, run_command
from agentforge.languages.cpp.language import compiler_version
from agentforge.languages.cuda import compilers
from agentforge.languages.cuda.shipped.agentforge_cuda import Library, load
from agentforge.languages.cuda.shipped.agentforge_launches import CudaError, EmulatorTooSlow
from agentforge.languages.cuda.source import unsupported, unsupported_in
from agentforge.testing.language import make_solution

KERNELS = """\
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>
#include "device_launch_parameters.h"
namespace cg = cooperative_groups;
using namespace nvcuda;

extern "C" __global__ void row_sums(const float* x, float* out, int cols) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    static __shared__ float partial[32];
    float sum = 0;
    for (int i = block.thread_rank(); i < cols; i += block.size()) sum += x[blockIdx.x * cols + i];
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = sum;
    block.sync();
    if (warp.meta_group_rank() > 0) return;
    float all = warp.thread_rank() < warp.meta_group_size() ? partial[warp.thread_rank()] : 0.0f;
    auto half = cg::tiled_partition<16>(block);
    for (int offset = half.size() / 2; offset > 0; offset /= 2) all += half.shfl_down(all, offset);
    all = warp.shfl(all, 0) + warp.shfl(all, 16);
    if (warp.thread_rank() == 0) out[blockIdx.x] = all;
}

extern "C" __global__ void votes(const float* x, int* out, int n) {
    auto quad = cg::tiled_partition<4>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool above = i < n && x[i] > 0;
    const int value = static_cast<int>(quad.ballot(above)) | quad.any(above) << 4 | quad.all(above) << 5;
    if (i < n) out[i] = value;
}

extern "C" __global__ void odd_functions(float* out, const float* x) {
    const float p = x[threadIdx.x];
    out[threadIdx.x] = erfinvf(2 * p - 1);
    out[threadIdx.x + 32] = normcdfinvf(p);
    half2 pair = __lowhigh2highlow(__halves2half2(__float2half(p), __float2half(1.0f)));
    out[threadIdx.x + 64] = __low2float(pair) + __half2float(hlog10(__float2half(100.0f))) + __hadd(3, 4);
    const float high = __umul64hi(1ull << 40, 1ull << 30);
    out[threadIdx.x + 96] = high + __rhadd(-3, -4) + umax(1u, 2u);
}

extern "C" __global__ void tiles_of_warps(int* out) {
    auto quad = cg::tiled_partition<4>(cg::tiled_partition<32>(cg::this_thread_block()));
    out[threadIdx.x] = quad.meta_group_rank() + 100 * quad.meta_group_size();
}

extern "C" __global__ void endless(float* out, int n) {
    if (blockIdx.x == 0 && threadIdx.x == 0) out[n] = 1;
}
"""

TENSOR_CORES = """\
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;

// The rows of b are in memory as columns, and the result is in two formats.
template <class T, class Out>
__device__ void multiply(const T* a, const T* b, Out* out, int k, bool wait, bool sync, int first) {
    __shared__ __align__(32) T of_a[2][256], of_b[2][256];
    wmma::fragment<wmma::accumulator, 16, 16, 16, Out> sum;
    wmma::fill_fragment(sum, 0.0f);
    const int row = threadIdx.x / 2, col = threadIdx.x % 2 * 8;
    for (int step = 0; step <= k / 16; step++) {
        if (step * 16 < k) {  // the last 2 elements of a row of b do not count
            const int zeros = step * 16 + col + 8 == k ? 2 * sizeof(T) : 0;
            const int from = row * k + step * 16 + col;
            __pipeline_memcpy_async(of_a[step & 1] + row * 16 + col, a + first + from, 16);
            __pipeline_memcpy_async(of_b[step & 1] + row * 16 + col, b + from, 16, zeros);
        }
        __pipeline_commit();
        if (step == 0) continue;
        __pipeline_wait_prior(wait ? 1 : 2);
        if (sync) __syncwarp();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> x;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> y;
        wmma::load_matrix_sync(x, of_a[(step - 1) & 1], 16);
        wmma::load_matrix_sync(y, of_b[(step - 1) & 1], 16);
        wmma::mma_sync(sum, x, y, sum);
        if (sync) __syncwarp();
    }
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] = Out(2) * sum.x[i];
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
}
extern "C" __global__ void multiply_half(const __half* a, const __half* b, __half* out, int k) {
    multiply(a, b, out, k, true, true, 0);
}
extern "C" __global__ void multiply_bfloat16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* out,
                                             int k, bool wait, bool sync, int first) {
    multiply(a, b, out, k, wait, sync, first);
}
// The lanes copy the left matrix element by element.
template <int m, int n>
__device__ void multiply_copy(const __half* a, const __half* b, float* out, bool sync) {
    __shared__ __align__(32) __half copy[m * 16];
    for (int i = threadIdx.x; i < m * 16; i += 32) copy[i] = a[i];
    if (sync) __syncwarp();
    wmma::fragment<wmma::matrix_a, m, n, 16, __half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, m, n, 16, __half, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, m, n, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(x, copy, 16);
    wmma::load_matrix_sync(y, b, n);
    wmma::mma_sync(sum, x, y, sum);
    wmma::store_matrix_sync(out, sum, n, wmma::mem_row_major);
}
extern "C" __global__ void square(const __half* a, const __half* b, float* out, bool sync) {
    multiply_copy<16, 16>(a, b, out, sync);
}
extern "C" __global__ void wide_tile(const __half* a, const __half* b, float* out, bool sync) {
    multiply_copy<32, 8>(a, b, out, sync);
}
"""

ARITHMETIC = """\
// Each lane adds the sum that lies `step` places before its own.
extern "C" __global__ void warp_scan(const float* x, float* out, bool sync) {
    __shared__ float sums[64];
    float* mine = sums + threadIdx.x / 32 * 32;
    const int lane = threadIdx.x % 32;
    float own = x[threadIdx.x];
    mine[lane] = own;
    __syncwarp();
    for (int step = 1; step < 32; step *= 2) {
        const float before = lane >= step ? mine[lane - step] : 0.0f;
        if (sync) __syncwarp();
        own += before;
        mine[lane] = own;
        __syncwarp();
    }
    out[threadIdx.x] = own;
}

// All lanes of a warp read half of a word; then the first reads it all and changes that half, or another warp
// does. The compiler reports a store beside a load of the same bytes as a load alone.
extern "C" __global__ void state_of_a_warp(int* out, int more, bool other) {
    __shared__ __align__(4) unsigned short state[2];
    if (threadIdx.x < 2) state[threadIdx.x] = 1;
    __syncthreads();
    int sum = 0;
    if (threadIdx.x < 32) {
        sum = state[1];
        __syncwarp();
        if (threadIdx.x == 0) state[1] = (*reinterpret_cast<const unsigned*>(state) >> 16) + more;
    } else if (other) {
        state[1] = 5;
    }
    __syncthreads();
    out[threadIdx.x] = sum + state[1];
}

extern "C" __global__ void conversions(const float* x, long long* out) {
    const float value = x[threadIdx.x];
    long long* mine = out + 4 * threadIdx.x;
    mine[0] = __float2int_rn(value);
    mine[1] = __float2uint_rz(value);
    mine[2] = __float2ll_rn(value);
    mine[3] = __double2int_rz(value);
}

extern "C" __global__ void products(const int* a, const float* x, float* out) {
    out[0] = __dp4a(a[0], a[1], 1);
    out[1] = __dp4a(static_cast<unsigned>(a[0]), static_cast<unsigned>(a[1]), 1u);
    out[2] = __powf(x[0], 2.0f);
    out[3] = __powf(-x[0], 2.0f);
    out[4] = __fadd_rn(__fmul_rn(x[1], x[1]), x[2]);
    out[5] = __fadd_rn(x[1] * x[1], x[2]);
}

extern "C" __global__ void fill(float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
"""

MANY_THREADS = """
import resource
import sys
import threading

import torch

from agentforge.languages.cuda.shipped.agentforge_cuda import load

torch.set_num_threads(64)
torch.ones(1 << 22).add_(1)  # starts them
resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
kernels = load(sys.argv[1], "k.cu")
out, failed = torch.zeros(64 * 1024), []
kernels.fill(out, grid=64, block=1024)
assert out.sum() == out.numel()

def launch():
    try:
        kernels.fill(out, grid=1, block=1024)
    except Exception as error:
        failed.append(error)

for _ in range(40):
    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
assert not failed, failed[0]
"""


def built(folder: Path, source: str, more: Mapping[str, str] | None = None) -> BuildResult:
    files = {"model_new.py": "class ModelNew: ...\n", "k.cu": source, **(more or {})}
    return languages.create("cuda").build(
        make_solution("cuda", files), folder, cache=folder / "cache", run=run_command, timeout_s=120.0
    )


def loaded(folder: Path, source: str) -> Library:
    if not compiler_version():
        pytest.skip("needs a C++ compiler")
    result = built(folder, source)
    assert result.ok and not result.unjudged, result.unjudged or result.log
    return load(str(folder / "model_new.py"), "k.cu")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return loaded(tmp_path_factory.mktemp("emulator"), KERNELS)


@pytest.mark.slow
def test_tiles_of_a_block(kernels: Library) -> None:
    x = torch.randint(-8, 9, (3, 300)).float()
    out = torch.empty(3)
    kernels.row_sums(x, out, 300, grid=3, block=(8, 16))
    assert torch.equal(out, x.sum(1))


def test_votes_of_a_tile(kernels: Library) -> None:
    x = torch.tensor([1.0, -1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1])
    out = torch.empty(12, dtype=torch.int32)
    kernels.votes(x, out, 12, grid=1, block=32)
    assert out.tolist() == [0b011101] * 4 + [0] * 4 + [0b111111] * 4


def test_functions_that_few_know(kernels: Library) -> None:
    x = torch.linspace(1e-4, 1 - 1e-4, 32)
    out = torch.empty(4, 32)
    kernels.odd_functions(out, x, grid=1, block=32)
    torch.testing.assert_close(out[0], torch.erfinv((2 * x - 1).double()).float(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(out[1], torch.special.ndtri(x.double()).float(), rtol=1e-5, atol=1e-6)
    assert out[2].tolist() == [1 + 2 + 3] * 32 and out[3].tolist() == [64 - 3 + 2] * 32


@pytest.fixture(scope="module")
def tensor_cores(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return loaded(tmp_path_factory.mktemp("tensor_cores"), TENSOR_CORES)


def without_last(b: torch.Tensor) -> torch.Tensor:
    b = b.clone()
    b[:, -2:] = 0
    return b


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "out"), [(torch.float16, torch.float16), (torch.bfloat16, torch.float32)])
def test_tensor_cores_and_asynchronous_copies(
    tensor_cores: Library, dtype: torch.dtype, out: torch.dtype
) -> None:
    a, b, found = torch.randn(16, 48).to(dtype), torch.randn(16, 48).to(dtype), torch.empty(16, 16, dtype=out)
    if out is torch.float16:
        tensor_cores.multiply_half(a, b, found, 48, grid=1, block=32)
    else:
        tensor_cores.multiply_bfloat16(a, b, found, 48, True, True, 0, grid=1, block=32)
    want = 2 * a.double() @ without_last(b).double().t()
    assert float((found.double() - want).norm() / want.norm()) < 2 * torch.finfo(out).eps


def test_a_copy_has_not_arrived_before_it_is_waited_for(tensor_cores: Library) -> None:
    a, found = torch.ones(16, 48, dtype=torch.bfloat16), torch.empty(16, 16)
    tensor_cores.multiply_bfloat16(a, a, found, 48, False, True, 0, grid=1, block=32)
    assert found.isnan().all()


@pytest.mark.parametrize(
    ("sync", "first", "block", "what"),
    [
        (False, 0, 32, r"k\.cu:\d+: race: .* __syncwarp\(\) is missing"),
        (True, 8, 32, r"k\.cu:18: out of bounds: .* reads 16 bytes, \d+ bytes past the end of a tensor"),
        (True, 1, 32, r"k\.cu:18: an asynchronous copy begins and ends at a multiple of its size"),
        (True, 0, 16, r"k\.cu:29: a product of matrices needs all 32 lanes of a warp"),
    ],
)
def test_faults_around_tensor_cores(
    tensor_cores: Library, sync: bool, first: int, block: int, what: str
) -> None:
    a, found = torch.ones(16, 48, dtype=torch.bfloat16), torch.empty(16, 16)
    with pytest.raises(CudaError, match=what):
        tensor_cores.multiply_bfloat16(a, a, found, 48, True, sync, first, grid=1, block=block)


def test_a_copy_by_lanes_needs_a_barrier_before_a_matrix_is_read(tensor_cores: Library) -> None:
    for multiply, m, n in ((tensor_cores.square, 16, 16), (tensor_cores.wide_tile, 32, 8)):
        a, b, found = torch.randn(m, 16).half(), torch.randn(16, n).half(), torch.empty(m, n)
        multiply(a, b, found, True, grid=1, block=32)
        torch.testing.assert_close(found, a.float() @ b.float(), rtol=1e-5, atol=1e-5)
        with pytest.raises(CudaError, match=r"race: .* __syncwarp\(\) is missing"):
            multiply(a, b, found, False, grid=1, block=32)


def test_tiles_of_a_tile_are_counted_in_it(kernels: Library) -> None:
    out = torch.empty(64, dtype=torch.int32)
    kernels.tiles_of_warps(out, grid=1, block=64)
    assert out.tolist() == [800 + thread % 32 // 4 for thread in range(64)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arithmetic")


@pytest.fixture(scope="module")
def arithmetic(folder: Path) -> Library:
    return loaded(folder, ARITHMETIC)


@pytest.mark.slow
def test_reads_that_a_warp_operation_orders_are_no_race(arithmetic: Library) -> None:
    x, out = torch.randint(-8, 9, (2, 32)).float(), torch.empty(2, 32)
    arithmetic.warp_scan(x, out, True, grid=1, block=64)
    assert torch.equal(out, x.cumsum(1))
    sums = torch.empty(2, 32, dtype=torch.int32)
    arithmetic.state_of_a_warp(sums, 2, False, grid=1, block=64)
    assert sums.tolist() == [[4] * 32, [3] * 32]
    with pytest.raises(CudaError, match=r"race: .* __syncwarp\(\) is missing"):
        arithmetic.warp_scan(x, out, False, grid=1, block=64)
    with pytest.raises(CudaError, match="race: thread 32 writes shared memory"):
        arithmetic.state_of_a_warp(sums, 2, True, grid=1, block=64)


def test_conversions_end_at_the_limits_of_their_type(arithmetic: Library) -> None:
    x = torch.tensor([2.5, 1e10, -1e10, float("nan"), float("inf")])
    out = torch.empty(5, 4, dtype=torch.int64)
    arithmetic.conversions(x, out, grid=1, block=5)
    most = 2**31 - 1
    assert out.tolist() == [
        [2, 2, 2, 2],
        [most, 2**32 - 1, 10**10, most],
        [-most - 1, 0, -(10**10), -most - 1],
        [0, 0, -(2**63), -most - 1],
        [most, 2**32 - 1, 2**63 - 1, most],
    ]


def test_bytes_powers_and_rounded_products(arithmetic: Library) -> None:
    a = torch.tensor([0xFF010203 - 2**32, 0x80010101 - 2**32], dtype=torch.int32)
    x, out = torch.tensor([-3.0, 1 + 2**-12, -1 - 2**-11]), torch.empty(6)
    arithmetic.products(a, x, out, grid=1, block=1)
    assert out[:2].tolist() == [3 + 2 + 1 + 128 + 1, 3 + 2 + 1 + 255 * 128 + 1]
    assert out[2].isnan() and abs(float(out[3]) - 9) < 1e-5
    assert out[4:].tolist() == [0, 0]  # 2**-24 if they are fused


@pytest.mark.slow
def test_stacks_fit_into_a_process_with_many_threads(arithmetic: Library, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MANY_THREADS, str(folder / "model_new.py")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_launch_that_would_take_hours_is_no_hang(kernels: Library) -> None:
    with pytest.raises(EmulatorTooSlow, match=r"too slow: \d+ of 2147483647 blocks took 4 s"):
        kernels.endless(torch.empty(1), 0, grid=2**31 - 1, block=32)


def test_a_fault_before_that_is_a_fault(kernels: Library) -> None:
    with pytest.raises(CudaError, match=r"^k\.cu:\d+: out of bounds") as told:
        kernels.endless(torch.empty(1), 1, grid=8, block=32)
    assert not isinstance(told.value, EmulatorTooSlow)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('__global__ void k() {\n asm volatile("bar.sync 0;");\n}', "inline PTX"),
        ("__global__ void k() {\n cg::memcpy_async(block, a, b, 16);\n}", "asynchronous copies of groups"),
        ("__global__ void k() {\n auto grid = cg::this_grid();\n}", "cooperative groups"),
        ("__global__ void k() {\n cub::BlockReduce<float, 256> r;\n}", "CUB"),
        ("__global__ void k() {\n curandState state;\n}", "cuRAND"),
        ("__global__ void k(\n cg::cluster_group all) {}", "thread block clusters"),
    ],
)
def test_what_has_no_emulation_is_named_with_its_line(text: str, what: str) -> None:
    found = unsupported_in(text, "k.cu")
    assert found is not None and what in str(found) and str(found).startswith("k.cu:2 ")


def test_clusters_of_points_are_no_clusters_of_blocks() -> None:
    text = "__global__ void assign(const float* cluster_centers, int* cluster_ids) { cluster_ids[0] = 0; }\n"
    assert unsupported({"k.cu": text}) is None


def test_headers_alone_are_no_use_of_what_they_hold() -> None:
    headers = (
        "#include <mma.h>\n#include <cub/cub.cuh>\n#include <curand_kernel.h>\n// asm, cub::BlockReduce\n"
    )
    assert unsupported({"k.cu": headers}) is None


@pytest.mark.skipif(compilers() is None, reason="needs NVRTC or nvcc")
def test_a_header_of_another_package_is_no_mistake_of_the_source(tmp_path: Path) -> None:
    source = '#include <curand_kernel.h>\nextern "C" __global__ void k(float* out) { curandState state; }\n'
    result = built(tmp_path, source)
    assert result.ok and "curand" in result.unjudged.lower()


@pytest.mark.skipif(compilers() is None, reason="needs NVRTC or nvcc")
def test_a_message_in_a_header_names_the_header(tmp_path: Path) -> None:
    kernel = '#include "twice.cuh"\nextern "C" __global__ void k(float* out) { *out = twice(1); }\n'
    result = built(tmp_path, kernel, {"twice.cuh": "\n\n__device__ float twice(float x) { return x * ; }\n"})
    assert [(d.file, d.line) for d in result.diagnostics if d.severity == "error"] == [("twice.cuh", 3)]
