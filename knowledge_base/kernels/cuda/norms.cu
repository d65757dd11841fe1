// RMSNorm and LayerNorm of rows, one block a row. With `staged`, the row is read once and kept in dynamic
// shared memory (4 bytes an element); without, it is read again for each pass, mostly from the L2 cache.
#include "rows.cuh"

template <class T>
__device__ void rmsnorm(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ out, int64_t cols,
                        float eps, bool staged) {
    extern __shared__ __align__(16) float row[];
    x += blockIdx.x * cols;
    out += blockIdx.x * cols;
    float sum = 0.0f;
    each_pack(x, cols, [&](int64_t i, const float* v, int count) {
        if (staged) stage(row, i, v, count);
#pragma unroll
        for (int k = 0; k < count; k++) sum += v[k] * v[k];
    });
    const float scale = rsqrtf(over_block(sum, Sum()) / cols + eps);
    if (staged && !alike(x, out, cols)) __syncthreads();
    fill(out, cols, [&](int64_t i, float* v, int count) {
        float w[Pack<T>::size];
        staged ? staged_at(row, i, v, count) : read(x, cols, i, v, count);
        if (weight) read(weight, cols, i, w, count);
#pragma unroll
        for (int k = 0; k < count; k++) v[k] = v[k] * scale * (weight ? w[k] : 1.0f);
    });
}

// Mean first, then the squares of what differs from it: exact where the mean is large.
template <class T>
__device__ void layernorm(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                          T* __restrict__ out, int64_t cols, float eps, bool staged) {
    extern __shared__ __align__(16) float row[];
    x += blockIdx.x * cols;
    out += blockIdx.x * cols;
    float sum = 0.0f, squares = 0.0f;
    each_pack(x, cols, [&](int64_t i, const float* v, int count) {
        if (staged) stage(row, i, v, count);
#pragma unroll
        for (int k = 0; k < count; k++) sum += v[k];
    });
    const float mean = over_block(sum, Sum()) / cols;
    own_packs(x, cols, [&](int64_t i, int count) {
        float v[Pack<T>::size];
        staged ? staged_at(row, i, v, count) : read(x, cols, i, v, count);
#pragma unroll
        for (int k = 0; k < count; k++) squares += (v[k] - mean) * (v[k] - mean);
    });
    const float scale = rsqrtf(over_block(squares, Sum()) / cols + eps);
    if (staged && !alike(x, out, cols)) __syncthreads();
    fill(out, cols, [&](int64_t i, float* v, int count) {
        float w[Pack<T>::size], b[Pack<T>::size];
        staged ? staged_at(row, i, v, count) : read(x, cols, i, v, count);
        if (weight) read(weight, cols, i, w, count);
        if (bias) read(bias, cols, i, b, count);
#pragma unroll
        for (int k = 0; k < count; k++)
            v[k] = (v[k] - mean) * scale * (weight ? w[k] : 1.0f) + (bias ? b[k] : 0.0f);
    });
}

extern "C" __global__ void __launch_bounds__(1024, 1)
rmsnorm_float(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out, int64_t cols,
    float eps, bool staged) {
    rmsnorm(x, weight, out, cols, eps, staged);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
layernorm_float(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
    float* __restrict__ out, int64_t cols, float eps, bool staged) {
    layernorm(x, weight, bias, out, cols, eps, staged);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
rmsnorm_half(const __half* __restrict__ x, const __half* __restrict__ weight, __half* __restrict__ out, int64_t cols,
    float eps, bool staged) {
    rmsnorm(x, weight, out, cols, eps, staged);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
layernorm_half(const __half* __restrict__ x, const __half* __restrict__ weight, const __half* __restrict__ bias,
    __half* __restrict__ out, int64_t cols, float eps, bool staged) {
    layernorm(x, weight, bias, out, cols, eps, staged);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
rmsnorm_bfloat16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight, __nv_bfloat16* __restrict__ out, int64_t cols,
    float eps, bool staged) {
    rmsnorm(x, weight, out, cols, eps, staged);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
layernorm_bfloat16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ weight, const __nv_bfloat16* __restrict__ bias,
    __nv_bfloat16* __restrict__ out, int64_t cols, float eps, bool staged) {
    layernorm(x, weight, bias, out, cols, eps, staged);
}
