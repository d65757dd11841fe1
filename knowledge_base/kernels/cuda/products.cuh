// A block's tile of one or two products: 128 rows, and 64 columns of each of two right sides, which are
// neighbours in one matrix or the same columns of two.
#pragma once
#include "tiles.cuh"

constexpr int tile_rows = 128, tile_cols = 64, stages = 3;
template <class T>
constexpr int depth = 64 / sizeof(T);
// Elements of a tile of the left matrix and of each right one; `stages` of them are under way at a time.
template <class T>
constexpr int left_size = tile_rows * stride<T>(depth<T>);
template <class T>
constexpr int right_size = tile_cols * stride<T>(depth<T>);

// Where the tile of this block begins: tiles run down `group` rows of them before the next column, so that
// both sides stay in the L2 cache.
struct Place {
    int64_t row, col;
    __device__ Place(int64_t m, int64_t n, int width, int group) {
        const int64_t down = (m + tile_rows - 1) / tile_rows, across = (n + width - 1) / width;
        const int64_t of_group = group * across, first = blockIdx.x / of_group * group;
        const int64_t height = down - first < group ? down - first : group;
        row = (first + blockIdx.x % of_group % height) * tile_rows;
        col = blockIdx.x % of_group / height * width;
    }
};

// What a warp has of the tile: 64 rows of 2 * 16 columns, without tensor cores 16 of 2 * 64.
template <class T>
constexpr bool cores = sizeof(T) == 2;
template <class T>
using TileSums = Sums<T, cores<T> ? 4 : 1, cores<T> ? 2 : 8>;
template <class T>
__device__ __forceinline__ int first_row() { return threadIdx.x / 32 / (cores<T> ? 4 : 1) * (cores<T> ? 64 : 16); }

// Adds up the tile. With `across` the right sides are k x n, else n x k.
template <bool across, class T>
__device__ __forceinline__ void products(TileSums<T>& sums, const T* __restrict__ a, const T* __restrict__ first, int64_t first_col,
                                         const T* __restrict__ second, int64_t second_col, int64_t row, int64_t m,
                                         int64_t n, int64_t k, bool whole_a, bool whole_b) {
    constexpr int inner = depth<T>, a_stride = stride<T>(inner), b_stride = stride<T>(across ? tile_cols : inner);
    extern __shared__ __align__(128) char memory[];
    T* tiles = reinterpret_cast<T*>(memory);
    const int64_t steps = (k + inner - 1) / inner;
    const auto ask = [&](int64_t step) {
        T* to = tiles + step % stages * (left_size<T> + 2 * right_size<T>);
        const int64_t at = step * inner;
        if (step < steps) {
            fetch<inner>(to, tile_rows, a, row, at, m, k, whole_a);
            to += left_size<T>;
            if constexpr (across) {
                fetch<tile_cols>(to, inner, first, at, first_col, k, n, whole_b);
                fetch<tile_cols>(to + right_size<T>, inner, second, at, second_col, k, n, whole_b);
            } else {
                fetch<inner>(to, tile_cols, first, first_col, at, n, k, whole_b);
                fetch<inner>(to + right_size<T>, tile_cols, second, second_col, at, n, k, whole_b);
            }
        }
        __pipeline_commit();
    };
    sums.clear();
#pragma unroll 1
    for (int step = 0; step < stages - 1; step++) ask(step);
#pragma unroll 1
    for (int64_t step = 0; step < steps; step++) {
        __pipeline_wait_prior(stages - 2);
        __syncthreads();
        ask(step + stages - 1);
        const T* left = tiles + step % stages * (left_size<T> + 2 * right_size<T>);
        const T* right = left + left_size<T>;
#pragma unroll
        for (int i = 0; i < inner; i += 16) {
            const auto square = [&](int j) {
                const int side = cores<T> ? j : j / 4, col = 16 * (cores<T> ? threadIdx.x / 32 % 4 : j % 4);
                return right + side * right_size<T> + (across ? i * b_stride + col : col * b_stride + i);
            };
            sums.template add<across>(left + first_row<T>() * a_stride + i, a_stride, square, b_stride);
        }
    }
    __pipeline_wait_prior(0);
    __syncthreads();  // the tiles' memory is free
}

// Calls use(row, column, sums) for eight neighbours of a row at a time, places in the tile: `sums` are those of
// the first right side, `sums` + 16 of the second.
template <class T, class F>
__device__ __forceinline__ void each_eight(const TileSums<T>& sums, F use) {
    extern __shared__ __align__(128) char memory[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float* patch = reinterpret_cast<float*>(memory) + warp * 32 * 36;
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
#pragma unroll
        for (int part = half; part < half + 2; part++) {
            float* to = patch + (part - half) * 16 * 36;
            sums.put(cores<T> ? part : 0, cores<T> ? 0 : part, to, 36);
            sums.put(cores<T> ? part : 0, cores<T> ? 1 : part + 4, to + 16, 36);
        }
        __syncwarp();
#pragma unroll 1
        for (int part = half; part < half + 2; part++)
            use(first_row<T>() + (cores<T> ? part * 16 : 0) + lane / 2,
                16 * (cores<T> ? warp % 4 : part) + lane % 2 * 8,
                patch + ((part - half) * 16 + lane / 2) * 36 + lane % 2 * 8);
        __syncwarp();
    }
}
