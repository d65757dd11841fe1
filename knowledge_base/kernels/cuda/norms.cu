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
    each(x, cols, [&](int64_t i, float v) {
        if (staged) row[i] = v;
        sum += v * v;
    });
    const float scale = rsqrtf(over_block(sum, Sum()) / cols + eps);
    if (staged && !alike(x, out, cols)) __syncthreads();
    fill(out, cols, [&](int64_t i) {
        const float v = (staged ? row[i] : to_float(x[i])) * scale;
        return weight ? v * to_float(weight[i]) : v;
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
    each(x, cols, [&](int64_t i, float v) {
        if (staged) row[i] = v;
        sum += v;
    });
    const float mean = over_block(sum, Sum()) / cols;
    own(x, cols, [&](int64_t i) {
        const float v = (staged ? row[i] : to_float(x[i])) - mean;
        squares += v * v;
    });
    const float scale = rsqrtf(over_block(squares, Sum()) / cols + eps);
    if (staged && !alike(x, out, cols)) __syncthreads();
    fill(out, cols, [&](int64_t i) {
        float v = ((staged ? row[i] : to_float(x[i])) - mean) * scale;
        if (weight) v *= to_float(weight[i]);
        return bias ? v + to_float(bias[i]) : v;
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
