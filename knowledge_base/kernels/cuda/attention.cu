// softmax(q k^T * scale) v by tiles: scores stay on the chip, with a running maximum and sum (FlashAttention-2's
// forward pass). Each warp of a block has 16 queries of a head.
#include "tiles.cuh"

template <class T>
constexpr int keys_tile = sizeof(T) == 2 ? 64 : 32;
// Floats between two rows of a warp's scores: eight lanes, two a row, read different banks.
template <class T>
constexpr int score_stride = keys_tile<T> + 8;
constexpr int fade_stride = 20;

// Two lanes a row take four neighbours in turn: the softmax of a warp's scores so far.
template <class T>
struct RowSoftmax {
    float top = -INFINITY, total = 0.0f;

    // Replaces scores by weights of type T, which begin where the scores of their row began, and writes what
    // the earlier sums are multiplied by. Scores are those of powers of two.
    __device__ __forceinline__ void take(float* scores, float* fades, float scale, int64_t first, int64_t last) {
        constexpr int count = keys_tile<T> / 8;
        const int row = threadIdx.x % 32 / 2, part = threadIdx.x % 2;
        float4 found[count];
        float higher = top;
#pragma unroll
        for (int i = 0; i < count; i++) {
            const int64_t key = first + 8 * i + 4 * part;
            const float4 four = *reinterpret_cast<const float4*>(scores + row * score_stride<T> + 8 * i + 4 * part);
            found[i].x = key < last ? four.x * scale : -INFINITY;
            found[i].y = key + 1 < last ? four.y * scale : -INFINITY;
            found[i].z = key + 2 < last ? four.z * scale : -INFINITY;
            found[i].w = key + 3 < last ? four.w * scale : -INFINITY;
            higher = Max()(Max()(Max()(Max()(higher, found[i].x), found[i].y), found[i].z), found[i].w);
        }
        higher = Max()(higher, __shfl_xor_sync(0xffffffffu, higher, 1));
        __syncwarp();  // the warp has read its scores: weights take their place
        const float base = higher == -INFINITY ? 0.0f : higher;  // without it rows that begin with -inf are NaN
        const float fade = exp2f(top - base);
        float sum = 0.0f;
        T* weights = reinterpret_cast<T*>(scores + row * score_stride<T>);
#pragma unroll
        for (int i = 0; i < count; i++) {
            const float four[4] = {exp2f(found[i].x - base), exp2f(found[i].y - base), exp2f(found[i].z - base),
                                   exp2f(found[i].w - base)};
            struct __align__(4 * sizeof(T)) Four { T at[4]; } rounded;
#pragma unroll
            for (int k = 0; k < 4; k++) sum += four[k], rounded.at[k] = from_float<T>(four[k]);
            *reinterpret_cast<Four*>(weights + 8 * i + 4 * part) = rounded;
        }
        total = total * fade + sum + __shfl_xor_sync(0xffffffffu, sum, 1);
        top = higher;
        const float4 fours = make_float4(fade, fade, fade, fade);
        *reinterpret_cast<float4*>(fades + row * fade_stride + part * 8) = fours;
        *reinterpret_cast<float4*>(fades + row * fade_stride + part * 8 + 4) = fours;
    }
};

// Heads of up to `size` elements; the rest of a row is 0.
template <int size, class T>
__device__ __forceinline__ void attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                                       T* __restrict__ out, int64_t heads, int64_t queries, int64_t keys, int64_t width,
                                       float scale, bool causal, bool whole) {
    constexpr int across = stride<T>(size), score = score_stride<T>, step = keys_tile<T>;
    extern __shared__ __align__(128) char memory[];
    const int queries_tile = blockDim.x / 2;
    T *of_q = reinterpret_cast<T*>(memory), *of_k = of_q + queries_tile * across, *of_v = of_k + step * across;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float* scores = reinterpret_cast<float*>(of_v + step * across) + warp * 16 * (score + fade_stride);
    float* fades = scores + 16 * score;
    // With a causal mask the last queries have most to do: they begin first.
    const int64_t head = blockIdx.x % heads, tile = gridDim.x / heads - 1 - blockIdx.x / heads;
    const int64_t row = tile * queries_tile;
    q += head * queries * width, out += head * queries * width, k += head * keys * width, v += head * keys * width;
    const int64_t seen = causal && row + queries_tile < keys ? row + queries_tile : keys;
    const int64_t mine = row + warp * 16 + lane / 2, end = causal && mine + 1 < keys ? mine + 1 : keys;

    Sums<T, 1, size / 16> sums;
    RowSoftmax<T> softmax;
    sums.clear();
    fetch<size>(of_q, queries_tile, q, row, 0, queries, width, whole);
    fetch<size>(of_k, step, k, 0, 0, keys, width, whole);
    __pipeline_commit();
#pragma unroll 1
    for (int64_t first = 0; first < seen; first += step) {
        fetch<size>(of_v, step, v, first, 0, keys, width, whole);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();  // the keys are here
        Sums<T, 1, step / 16> products;
        products.clear();
#pragma unroll 2
        for (int i = 0; i < size; i += 16)
            products.template add<false>(of_q + warp * 16 * across + i, across,
                                         [&](int j) { return of_k + j * 16 * across + i; }, across);
#pragma unroll
        for (int j = 0; j < step / 16; j++) products.put(0, j, scores + j * 16, score);
        __syncthreads();  // all warps are done with the keys
        if (first + step < seen) fetch<size>(of_k, step, k, first + step, 0, keys, width, whole);
        __pipeline_commit();
        softmax.take(scores, fades, scale, first, end);
        __pipeline_wait_prior(1);
        __syncthreads();  // the values are here
        sums.scale(fades, fade_stride);
        constexpr int of_weights = score * sizeof(float) / sizeof(T);
#pragma unroll 2
        for (int i = 0; i < step; i += 16)
            sums.template add<true>(reinterpret_cast<const T*>(scores) + i, of_weights,
                                    [&](int j) { return of_v + i * across + j * 16; }, across);
        __syncthreads();  // all warps are done with the values
    }
    const float scaled = keys ? 1.0f / softmax.total : 0.0f;
    const auto put = [&](int j) {
        float values[8];
        sums.put(0, j, scores, score);
        __syncwarp();
        eight_at(scores + lane / 2 * score + lane % 2 * 8, values);
#pragma unroll
        for (int i = 0; i < 8; i++) values[i] *= scaled;
        if (mine < queries) put_eight(out + mine * width, j * 16 + lane % 2 * 8, width, whole, values);
        __syncwarp();
    };
#pragma unroll
    for (int j = 0; j < size / 16; j++) put(j);
}

extern "C" __global__ void __launch_bounds__(128, 2)
attention_64_float(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out,
    int64_t heads, int64_t queries, int64_t keys, int64_t width, float scale, bool causal, bool whole) {
    attend<64>(q, k, v, out, heads, queries, keys, width, scale, causal, whole);
}
extern "C" __global__ void __launch_bounds__(128, 2)
attention_128_float(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ out,
    int64_t heads, int64_t queries, int64_t keys, int64_t width, float scale, bool causal, bool whole) {
    attend<128>(q, k, v, out, heads, queries, keys, width, scale, causal, whole);
}
extern "C" __global__ void __launch_bounds__(128, 2)
attention_64_half(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
    int64_t heads, int64_t queries, int64_t keys, int64_t width, float scale, bool causal, bool whole) {
    attend<64>(q, k, v, out, heads, queries, keys, width, scale, causal, whole);
}
extern "C" __global__ void __launch_bounds__(128, 2)
attention_128_half(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, __half* __restrict__ out,
    int64_t heads, int64_t queries, int64_t keys, int64_t width, float scale, bool causal, bool whole) {
    attend<128>(q, k, v, out, heads, queries, keys, width, scale, causal, whole);
}
extern "C" __global__ void __launch_bounds__(128, 2)
attention_64_bfloat16(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k, const __nv_bfloat16* __restrict__ v, __nv_bfloat16* __restrict__ out,
    int64_t heads, int64_t queries, int64_t keys, int64_t width, float scale, bool causal, bool whole) {
    attend<64>(q, k, v, out, heads, queries, keys, width, scale, causal, whole);
}
extern "C" __global__ void __launch_bounds__(128, 2)
attention_128_bfloat16(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ k, const __nv_bfloat16* __restrict__ v, __nv_bfloat16* __restrict__ out,
    int64_t heads, int64_t queries, int64_t keys, int64_t width, float scale, bool causal, bool whole) {
    attend<128>(q, k, v, out, heads, queries, keys, width, scale, causal, whole);
}
