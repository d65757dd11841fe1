// Softmax and log-softmax of rows, one block a row. With `staged`, the row lies in dynamic shared memory
// (4 bytes an element).
#include "rows.cuh"

// The row is read once and kept in shared memory as float.
template <class T>
__device__ void softmax_staged(const T* __restrict__ x, T* __restrict__ out, int64_t cols, bool log) {
    extern __shared__ __align__(16) float row[];
    x += blockIdx.x * cols;
    out += blockIdx.x * cols;
    float top = -INFINITY, sum = 0.0f;
    each_pack(x, cols, [&](int64_t i, const float* v, int count) {
        stage(row, i, v, count);
#pragma unroll
        for (int k = 0; k < count; k++) top = Max()(top, v[k]);
    });
    top = over_block(top, Max());
    own_packs(x, cols, [&](int64_t i, int count) {
        float v[Pack<T>::size];
        staged_at(row, i, v, count);
#pragma unroll
        for (int k = 0; k < count; k++) sum += __expf(v[k] - top);
    });
    sum = over_block(sum, Sum());
    if (!alike(x, out, cols)) __syncthreads();
    const float shift = top + __logf(sum), scale = 1.0f / sum;
    fill(out, cols, [&](int64_t i, float* v, int count) {
        staged_at(row, i, v, count);
#pragma unroll
        for (int k = 0; k < count; k++) v[k] = log ? v[k] - shift : __expf(v[k] - top) * scale;
    });
}

// The row is read twice: once for a running maximum and sum, once for the answer.
template <class T>
__device__ void softmax_online(const T* __restrict__ x, T* __restrict__ out, int64_t cols, bool log) {
    x += blockIdx.x * cols;
    out += blockIdx.x * cols;
    Running mine;
    each_pack(x, cols, [&](int64_t, const float* v, int count) { mine.take(v, count); });
    const Running all = mine.over_block();
    const float shift = all.top + __logf(all.sum), scale = 1.0f / all.sum;
    fill(out, cols, [&](int64_t i, float* v, int count) {
        read(x, cols, i, v, count);
#pragma unroll
        for (int k = 0; k < count; k++) v[k] = log ? v[k] - shift : __expf(v[k] - all.top) * scale;
    });
}

extern "C" __global__ void __launch_bounds__(1024, 1)
softmax_float(const float* __restrict__ x, float* __restrict__ out, int64_t cols, bool log, bool staged) {
    staged ? softmax_staged(x, out, cols, log) : softmax_online(x, out, cols, log);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
softmax_half(const __half* __restrict__ x, __half* __restrict__ out, int64_t cols, bool log, bool staged) {
    staged ? softmax_staged(x, out, cols, log) : softmax_online(x, out, cols, log);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
softmax_bfloat16(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ out, int64_t cols, bool log, bool staged) {
    staged ? softmax_staged(x, out, cols, log) : softmax_online(x, out, cols, log);
}
