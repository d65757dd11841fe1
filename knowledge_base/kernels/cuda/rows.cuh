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

template <class T>
__device__ __forceinline__ Pack<T> pack_at(const T* row, int64_t i) {
    return reinterpret_cast<const Pack<T>*>(row)[i];
}

// Calls f(index, values, count) for what this thread has of a row: neighbours from `index` on, as many as one
// access moves, or single ones. A thread asks for two accesses before it uses the first.
template <class T, class F>
__device__ __forceinline__ void each_pack(const T* __restrict__ row, int64_t cols, F f) {
    constexpr int size = Pack<T>::size;
    float values[size];
    if (packed(row, cols)) {
        const auto use = [&](int64_t i, const Pack<T>& pack) {
#pragma unroll
            for (int k = 0; k < size; k++) values[k] = to_float(pack.at[k]);
            f(i * size, values, size);
        };
        const int64_t packs = cols / size;
        int64_t i = threadIdx.x;
        for (; i + blockDim.x < packs; i += 2 * blockDim.x) {
            const Pack<T> first = pack_at(row, i), second = pack_at(row, i + blockDim.x);
            use(i, first);
            use(i + blockDim.x, second);
        }
        if (i < packs) use(i, pack_at(row, i));
    } else {
        for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) {
            values[0] = to_float(row[i]);
            f(i, values, 1);
        }
    }
}

// Calls f(index, value) for the elements of a row that this thread has.
template <class T, class F>
__device__ __forceinline__ void each(const T* __restrict__ row, int64_t cols, F f) {
    each_pack(row, cols, [&](int64_t i, const float* values, int count) {
#pragma unroll
        for (int k = 0; k < count; k++) f(i + k, values[k]);
    });
}

// Calls f(index, count) for the neighbours that `each_pack` gives to this thread.
template <class T, class F>
__device__ __forceinline__ void own_packs(const T* row, int64_t cols, F f) {
    constexpr int size = Pack<T>::size;
    if (packed(row, cols)) {
        for (int64_t i = threadIdx.x; i < cols / size; i += blockDim.x) f(i * size, size);
    } else {
        for (int64_t i = threadIdx.x; i < cols; i += blockDim.x) f(i, 1);
    }
}

// Writes to a row the values that f(index, values, count) makes, each by the thread that has it.
template <class T, class F>
__device__ __forceinline__ void fill(T* __restrict__ row, int64_t cols, F f) {
    constexpr int size = Pack<T>::size;
    own_packs(row, cols, [&](int64_t i, int count) {
        float values[size];
        f(i, values, count);
        if (count == size) {
            Pack<T> pack;
#pragma unroll
            for (int k = 0; k < size; k++) pack.at[k] = from_float<T>(values[k]);
            reinterpret_cast<Pack<T>*>(row)[i / size] = pack;
        } else {
            row[i] = from_float<T>(values[0]);
        }
    });
}

// Neighbours of a row as floats, by one access where the row allows it.
template <class T>
__device__ __forceinline__ void read(const T* row, int64_t cols, int64_t i, float* values, int count) {
    constexpr int size = Pack<T>::size;
    if (count == size && packed(row, cols)) {
        const Pack<T> pack = pack_at(row, i / size);
#pragma unroll
        for (int k = 0; k < size; k++) values[k] = to_float(pack.at[k]);
    } else {
#pragma unroll
        for (int k = 0; k < count; k++) values[k] = to_float(row[i + k]);
    }
}

// Neighbours to and from a row in shared memory: 16 bytes an access, or banks would be waited for.
__device__ __forceinline__ void stage(float* row, int64_t i, const float* values, int count) {
    if (count == 1) {
        row[i] = values[0];
        return;
    }
#pragma unroll
    for (int k = 0; k < count; k += 4)
        *reinterpret_cast<float4*>(row + i + k) =
            make_float4(values[k], values[k + 1], values[k + 2], values[k + 3]);
}
__device__ __forceinline__ void staged_at(const float* row, int64_t i, float* values, int count) {
    if (count == 1) {
        values[0] = row[i];
        return;
    }
#pragma unroll
    for (int k = 0; k < count; k += 4) {
        const float4 four = *reinterpret_cast<const float4*>(row + i + k);
        values[k] = four.x, values[k + 1] = four.y, values[k + 2] = four.z, values[k + 3] = four.w;
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

    // One exponential a value, and one for all that came before. A NaN reaches the sum.
    __device__ __forceinline__ void take(const float* values, int count) {
        float higher = top;
#pragma unroll
        for (int k = 0; k < count; k++) higher = fmaxf(higher, values[k]);
        // Where all was -inf so far the sum stays 0: -inf - -inf is no number.
        const float base = higher == -INFINITY ? 0.0f : higher;
        sum *= __expf(top - base);
#pragma unroll
        for (int k = 0; k < count; k++) sum += __expf(values[k] - base);
        top = higher;
    }
    __device__ __forceinline__ Running over_block() const {
        Running all;
        all.top = ::over_block(top, Max());
        all.sum = ::over_block(top == -INFINITY ? sum : sum * __expf(top - all.top), Sum());
        return all;
    }
};
