// Sum and maximum of rows, one block a row; long rows in pieces, one block a piece, combined in a second launch.
// The order of additions is fixed: the same input gives the same bits.
#include "rows.cuh"

template <class T, class Combine>
__device__ float reduce(const T* __restrict__ x, int64_t cols, Combine combine) {
    float value = Combine::start();
    each(x, cols, [&](int64_t, float v) { value = combine(value, v); });
    return over_block(value, combine);
}

// `out` is (rows, gridDim.y): piece blockIdx.y of row blockIdx.x, times `scale`.
template <class T, class Out>
__device__ void reduce_piece(const T* __restrict__ x, Out* __restrict__ out, int64_t cols, int64_t piece,
                             float scale, bool maximum) {
    const int64_t begin = blockIdx.y * piece, left = cols - begin;
    const int64_t length = left < piece ? left : piece;
    x += blockIdx.x * cols + begin;
    const float value = maximum ? reduce(x, length, Max()) : reduce(x, length, Sum());
    if (threadIdx.x == 0) out[blockIdx.x * gridDim.y + blockIdx.y] = from_float<Out>(value * scale);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
reduce_float(const float* __restrict__ x, float* __restrict__ out, int64_t cols, int64_t piece, float scale, bool maximum) {
    reduce_piece(x, out, cols, piece, scale, maximum);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
reduce_half(const __half* __restrict__ x, __half* __restrict__ out, int64_t cols, int64_t piece, float scale, bool maximum) {
    reduce_piece(x, out, cols, piece, scale, maximum);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
reduce_bfloat16(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ out, int64_t cols, int64_t piece, float scale, bool maximum) {
    reduce_piece(x, out, cols, piece, scale, maximum);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
partial_half(const __half* __restrict__ x, float* __restrict__ out, int64_t cols, int64_t piece, float scale, bool maximum) {
    reduce_piece(x, out, cols, piece, scale, maximum);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
partial_bfloat16(const __nv_bfloat16* __restrict__ x, float* __restrict__ out, int64_t cols, int64_t piece, float scale, bool maximum) {
    reduce_piece(x, out, cols, piece, scale, maximum);
}
