// What row kernels share: 16-byte loads and stores, conversion to float and back, reductions over a block.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ __half from_float<__half>(float x) { return __float2half_rn(x); }
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

// As many elements as one 16-byte access moves.
template <class T>
struct __align__(16) Pack {
    static constexpr int size = 16 / sizeof(T);
    T at[size];
};

template <class T>
__device__ __forceinline__ bool packed(const T* row, int64_t cols) {
    return cols % Pack<T>::size == 0 && reinterpret_cast<uintptr_t>(row) % 16 == 0;
}

// Calls f(index, value) for the elements of a row that this thread has.
template <class T, class F>
__device__ __forceinline__ void each(const T* __restrict__ row, int64_t cols, F f) {
    constexpr int size = Pack<T>::size;
    if (packed(row, cols)) {
        for (int64_t i = threadIdx.x; i < cols / size; i += blockDim.x) {
            const Pack<T> pack = reinterpret_cast<const Pack<T>*>(row)[i];
#pragma unroll
            for (int k = 0; k < size; k++) f(i * size + k, to_float(pack.at[k]));
        }
    } else {
        for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) f(i, to_float(row[i]));
    }
}

// Calls f(index) for the elements that `each` gives to this thread.
template <class T, class F>
__device__ __forceinline__ void own(const T* row, int64_t cols, F f) {
    constexpr int size = Pack<T>::size;
    if (packed(row, cols)) {
        for (int64_t i = threadIdx.x; i < cols / size; i += blockDim.x) {
#pragma unroll
            for (int k = 0; k < size; k++) f(i * size + k);
        }
    } else {
        for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) f(i);
    }
}

// Writes f(index) to the elements of a row, each by the thread that `each` gives it to.
template <class T, class F>
__device__ __forceinline__ void fill(T* __restrict__ row, int64_t cols, F f) {
    constexpr int size = Pack<T>::size;
    if (packed(row, cols)) {
        for (int64_t i = threadIdx.x; i < cols / size; i += blockDim.x) {
            Pack<T> pack;
#pragma unroll
            for (int k = 0; k < size; k++) pack.at[k] = from_float<T>(f(i * size + k));
            reinterpret_cast<Pack<T>*>(row)[i] = pack;
        }
    } else {
        for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) row[i] = from_float<T>(f(i));
    }
}

// Whether both rows are dealt out to threads in the same way: what a thread staged of one, it alone reads
// for the other. All threads of a block get the same answer.
template <class T>
__device__ __forceinline__ bool alike(const T* a, const T* b, int64_t cols) {
    return packed(a, cols) == packed(b, cols);
}

struct Sum {
    static __device__ float start() { return 0.0f; }
    __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {  // a NaN stays
    static __device__ float start() { return -INFINITY; }
    __device__ float operator()(float a, float b) const { return (a > b || a != a) ? a : b; }
};

// The combination over all threads of a block, in every thread; a block has whole warps.
template <class Combine>
__device__ __forceinline__ float over_block(float value, Combine combine) {
    __shared__ float partial[32];
#pragma unroll
    for (int bits = 16; bits; bits >>= 1) value = combine(value, __shfl_xor_sync(0xffffffffu, value, bits));
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    if (warps == 1) return value;
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = lane < warps ? partial[lane] : Combine::start();
#pragma unroll
    for (int bits = 16; bits; bits >>= 1) value = combine(value, __shfl_xor_sync(0xffffffffu, value, bits));
    __syncthreads();  // the next call writes `partial`
    return value;
}

// A running maximum and the sum of exp(x - maximum): softmax in one reading.
struct Running {
    float top = -INFINITY, sum = 0.0f;

    __device__ __forceinline__ void take(float x) {
        if (x <= top) {
            sum += x == -INFINITY ? 0.0f : __expf(x - top);
        } else {
            sum = (top == -INFINITY ? 0.0f : sum * __expf(top - x)) + (x == x ? 1.0f : x);
            top = x == x ? x : top;
        }
    }
    __device__ __forceinline__ Running over_block() const {
        Running all;
        all.top = ::over_block(top, Max());
        all.sum = ::over_block(top == -INFINITY ? sum : sum * __expf(top - all.top), Sum());
        return all;
    }
};
