// Rotary position embedding of the two halves of each head. A thread keeps the angles of one position and
// turns the same place of `group` heads with them. With `whole`, all halves are whole 16-byte accesses.
#include "rows.cuh"

// `count` neighbours of each half: one 16-byte access, or single elements.
template <int count, class T>
__device__ __forceinline__ void turn(const T* __restrict__ x, const T* __restrict__ cos, const T* __restrict__ sin,
                                     T* __restrict__ out, int64_t heads, int64_t positions, int64_t half, int group) {
    struct __align__(sizeof(T) * count) Some { T at[count]; };
    const auto get = [](const T* from) { return *reinterpret_cast<const Some*>(from); };
    const int64_t across = half / count, i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= positions * across) return;
    const int64_t position = i / across, col = i % across * count;
    const Some c = get(cos + position * 2 * half + col), s = get(sin + position * 2 * half + col);
    const int64_t first = int64_t(blockIdx.y) * group, last = first + group < heads ? first + group : heads;
#pragma unroll 2
    for (int64_t head = first; head < last; head++) {
        const int64_t at = ((blockIdx.z * heads + head) * positions + position) * 2 * half + col;
        const Some a = get(x + at), b = get(x + at + half);
        Some low, high;
#pragma unroll
        for (int k = 0; k < count; k++) {
            const float cosine = to_float(c.at[k]), sine = to_float(s.at[k]);
            low.at[k] = from_float<T>(to_float(a.at[k]) * cosine - to_float(b.at[k]) * sine);
            high.at[k] = from_float<T>(to_float(b.at[k]) * cosine + to_float(a.at[k]) * sine);
        }
        *reinterpret_cast<Some*>(out + at) = low;
        *reinterpret_cast<Some*>(out + at + half) = high;
    }
}

template <class T>
__device__ void rotary(const T* x, const T* cos, const T* sin, T* out, int64_t heads, int64_t positions, int64_t half,
                       int group, bool whole) {
    if (whole)
        turn<Pack<T>::size>(x, cos, sin, out, heads, positions, half, group);
    else
        turn<1>(x, cos, sin, out, heads, positions, half, group);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
rotary_float(const float* __restrict__ x, const float* __restrict__ cos, const float* __restrict__ sin,
    float* __restrict__ out, int64_t heads, int64_t positions, int64_t half, int32_t group, bool whole) {
    rotary(x, cos, sin, out, heads, positions, half, group, whole);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
rotary_half(const __half* __restrict__ x, const __half* __restrict__ cos, const __half* __restrict__ sin,
    __half* __restrict__ out, int64_t heads, int64_t positions, int64_t half, int32_t group, bool whole) {
    rotary(x, cos, sin, out, heads, positions, half, group, whole);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
rotary_bfloat16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ cos, const __nv_bfloat16* __restrict__ sin,
    __nv_bfloat16* __restrict__ out, int64_t heads, int64_t positions, int64_t half, int32_t group, bool whole) {
    rotary(x, cos, sin, out, heads, positions, half, group, whole);
}
