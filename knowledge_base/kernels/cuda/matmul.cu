// act(a b + bias), computed by 128 x 128 tiles; sums in float, 16-bit floats on tensor cores.
#include "products.cuh"

enum Activation { none, relu, gelu, silu };

__device__ __forceinline__ void activate(float* values, int activation) {
    const auto each = [&](auto function) {
#pragma unroll
        for (int i = 0; i < 8; i++) values[i] = function(values[i]);
    };
    if (activation == relu) each([](float x) { return x > 0.0f || x != x ? x : 0.0f; });
    if (activation == gelu) each([](float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); });
    if (activation == silu) each([](float x) { return x / (1.0f + __expf(-x)); });
}

template <class T>
__device__ void matmul(const T* a, const T* b, const T* bias, T* out, int64_t m, int64_t n, int64_t k, int group,
                       int activation, bool across, bool whole_a, bool whole_b, bool whole) {
    const Place at(m, n, 2 * tile_cols, group);
    TileSums<T> sums;
    if (across)
        products<true>(sums, a, b, at.col, b, at.col + tile_cols, at.row, m, n, k, whole_a, whole_b);
    else
        products<false>(sums, a, b, at.col, b, at.col + tile_cols, at.row, m, n, k, whole_a, whole_b);
    each_eight<T>(sums, [&](int row, int col, const float* found) {
        if (at.row + row >= m) return;
#pragma unroll 1
        for (int side = 0; side < 2; side++) {
            const int64_t first = at.col + side * tile_cols + col;
            float values[8];
            eight_at(found + side * 16, values);
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (bias && first + i < n) values[i] += to_float(bias[first + i]);
            activate(values, activation);
            put_eight(out + (at.row + row) * n, first, n, whole, values);
        }
    });
}

extern "C" __global__ void __launch_bounds__(256, 2)
matmul_float(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias, float* __restrict__ out,
    int64_t m, int64_t n, int64_t k, int32_t group, int32_t activation, bool across, bool whole_a, bool whole_b, bool whole) {
    matmul(a, b, bias, out, m, n, k, group, activation, across, whole_a, whole_b, whole);
}
extern "C" __global__ void __launch_bounds__(256, 2)
matmul_half(const __half* __restrict__ a, const __half* __restrict__ b, const __half* __restrict__ bias, __half* __restrict__ out,
    int64_t m, int64_t n, int64_t k, int32_t group, int32_t activation, bool across, bool whole_a, bool whole_b, bool whole) {
    matmul(a, b, bias, out, m, n, k, group, activation, across, whole_a, whole_b, whole);
}
extern "C" __global__ void __launch_bounds__(256, 2)
matmul_bfloat16(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b, const __nv_bfloat16* __restrict__ bias, __nv_bfloat16* __restrict__ out,
    int64_t m, int64_t n, int64_t k, int32_t group, int32_t activation, bool across, bool whole_a, bool whole_b, bool whole) {
    matmul(a, b, bias, out, m, n, k, group, activation, across, whole_a, whole_b, whole);
}
