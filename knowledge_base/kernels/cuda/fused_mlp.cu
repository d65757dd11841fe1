// silu(x gate) * (x up) by tiles of 128 x 64 of both products: x is read once, neither product is written.
#include "products.cuh"

template <class T>
__device__ void gated(const T* x, const T* gate, const T* up, T* out, int64_t m, int64_t n, int64_t k, int group,
                      bool whole_x, bool whole_weights, bool whole) {
    const Place at(m, n, tile_cols, group);
    TileSums<T> sums;
    products<false>(sums, x, gate, at.col, up, at.col, at.row, m, n, k, whole_x, whole_weights);
    each_eight<T>(sums, [&](int row, int col, const float* found) {
        if (at.row + row >= m) return;
        float values[8], other[8];
        eight_at(found, values);
        eight_at(found + 16, other);
#pragma unroll
        for (int i = 0; i < 8; i++) values[i] = values[i] / (1.0f + __expf(-values[i])) * other[i];
        put_eight(out + (at.row + row) * n, at.col + col, n, whole, values);
    });
}

extern "C" __global__ void __launch_bounds__(256, 2)
gated_float(const float* __restrict__ x, const float* __restrict__ gate, const float* __restrict__ up, float* __restrict__ out,
    int64_t m, int64_t n, int64_t k, int32_t group, bool whole_x, bool whole_weights, bool whole) {
    gated(x, gate, up, out, m, n, k, group, whole_x, whole_weights, whole);
}
extern "C" __global__ void __launch_bounds__(256, 2)
gated_half(const __half* __restrict__ x, const __half* __restrict__ gate, const __half* __restrict__ up, __half* __restrict__ out,
    int64_t m, int64_t n, int64_t k, int32_t group, bool whole_x, bool whole_weights, bool whole) {
    gated(x, gate, up, out, m, n, k, group, whole_x, whole_weights, whole);
}
extern "C" __global__ void __launch_bounds__(256, 2)
gated_bfloat16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ gate, const __nv_bfloat16* __restrict__ up, __nv_bfloat16* __restrict__ out,
    int64_t m, int64_t n, int64_t k, int32_t group, bool whole_x, bool whole_weights, bool whole) {
    gated(x, gate, up, out, m, n, k, group, whole_x, whole_weights, whole);
}
