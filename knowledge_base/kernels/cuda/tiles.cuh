// What products share: tiles that come to shared memory by asynchronous copies, and sums of products that the
// threads of a warp keep, on tensor cores for 16-bit floats and by fused multiply-adds for float.
#pragma once
#include <cuda_pipeline.h>
#include <mma.h>

#include "rows.cuh"

// Elements between two rows of a tile of `cols`: 16 bytes more, so that eight rows lie in different banks.
template <class T>
constexpr int stride(int cols) { return cols + Pack<T>::size; }

// Asks for rows x cols elements of a matrix whose rows are `width` elements apart; what lies outside of its
// first `height` rows and `width` columns is 0. All threads of a block take part; `whole` rows are a multiple
// of 16 bytes and begin at one. The caller commits, waits and meets at a barrier.
template <int cols, class T>
__device__ __forceinline__ void fetch(T* tile, int rows, const T* __restrict__ from, int64_t row, int64_t col,
                                      int64_t height, int64_t width, bool whole) {
    constexpr int size = Pack<T>::size, across = cols / size;
    if (whole) {
        for (int i = threadIdx.x; i < rows * across; i += blockDim.x) {
            const int r = i / across, c = i % across * size;
            const bool inside = row + r < height && col + c < width;
            const T* at = inside ? from + (row + r) * width + col + c : from;
            __pipeline_memcpy_async(tile + r * stride<T>(cols) + c, at, 16, inside ? 0 : 16);
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.x; i < rows * cols; i += blockDim.x) {
            const int r = i / cols, c = i % cols;
            const bool inside = row + r < height && col + c < width;
            tile[r * stride<T>(cols) + c] = inside ? from[(row + r) * width + col + c] : from_float<T>(0.0f);
        }
    }
}

template <bool across> struct Order { using type = nvcuda::wmma::row_major; };
template <> struct Order<false> { using type = nvcuda::wmma::col_major; };

// A warp's sums: `height` x `width` squares of 16 x 16. `add` takes 16 columns of the left tile at `a`, and the
// squares of the right tile at right(j): with `across`, a row of it is a step of the sum, else a column is.
template <class T, int height, int width>
struct Sums {
    template <class Use, class Layout>
    using Part = nvcuda::wmma::fragment<Use, 16, 16, 16, T, Layout>;
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> at[height][width];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < height; i++)
#pragma unroll
            for (int j = 0; j < width; j++) nvcuda::wmma::fill_fragment(at[i][j], 0.0f);
    }
    template <bool across, class F>
    __device__ __forceinline__ void add(const T* a, int a_stride, F right, int b_stride) {
        using namespace nvcuda::wmma;
        Part<matrix_a, row_major> x[height];
#pragma unroll
        for (int i = 0; i < height; i++) load_matrix_sync(x[i], a + i * 16 * a_stride, a_stride);
#pragma unroll
        for (int j = 0; j < width; j++) {
            Part<matrix_b, typename Order<across>::type> y;
            load_matrix_sync(y, right(j), b_stride);
#pragma unroll
            for (int i = 0; i < height; i++) mma_sync(at[i][j], x[i], y, at[i][j]);
        }
    }
    // Multiplies each square by a matrix in shared memory.
    __device__ __forceinline__ void scale(const float* by, int by_stride) {
        nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> factor;
        nvcuda::wmma::load_matrix_sync(factor, by, by_stride, nvcuda::wmma::mem_row_major);
#pragma unroll
        for (int i = 0; i < height; i++)
#pragma unroll
            for (int j = 0; j < width; j++)
#pragma unroll
                for (int k = 0; k < factor.num_elements; k++) at[i][j].x[k] *= factor.x[k];
    }
    // Writes a square to shared memory.
    __device__ __forceinline__ void put(int i, int j, float* to, int to_stride) const {
        nvcuda::wmma::store_matrix_sync(to, at[i][j], to_stride, nvcuda::wmma::mem_row_major);
    }
};

// The same without tensor cores: a thread has eight rows of one column of each square.
template <int height, int width>
struct Sums<float, height, width> {
    float at[height][width][8];

    static __device__ int row() { return (threadIdx.x & 16) / 2; }
    static __device__ int col() { return threadIdx.x & 15; }
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < height * width * 8; i++) at[i / 8 / width][i / 8 % width][i % 8] = 0.0f;
    }
    template <bool across, class F>
    __device__ __forceinline__ void add(const float* a, int a_stride, F right, int b_stride) {
#pragma unroll
        for (int k = 0; k < 16; k += 4) {
            float4 x[height][8];
#pragma unroll
            for (int i = 0; i < height * 8; i++)
                x[i / 8][i % 8] = *reinterpret_cast<const float4*>(a + (i / 8 * 16 + row() + i % 8) * a_stride + k);
#pragma unroll
            for (int j = 0; j < width; j++) {
                const float* b = right(j) + (across ? k * b_stride + col() : col() * b_stride + k);
                const float4 y = across ? make_float4(b[0], b[b_stride], b[2 * b_stride], b[3 * b_stride])
                                        : *reinterpret_cast<const float4*>(b);
#pragma unroll
                for (int i = 0; i < height; i++)
#pragma unroll
                    for (int r = 0; r < 8; r++)
                        at[i][j][r] += x[i][r].x * y.x + x[i][r].y * y.y + x[i][r].z * y.z + x[i][r].w * y.w;
            }
        }
    }
    __device__ __forceinline__ void scale(const float* by, int by_stride) {
#pragma unroll
        for (int i = 0; i < height * width * 8; i++)
            at[i / 8 / width][i / 8 % width][i % 8] *= by[(row() + i % 8) * by_stride + col()];
    }
    __device__ __forceinline__ void put(int i, int j, float* to, int to_stride) const {
#pragma unroll
        for (int r = 0; r < 8; r++) to[(row() + r) * to_stride + col()] = at[i][j][r];
    }
};

// Writes eight neighbours of a row of `width` columns, by 16 bytes if its rows are `whole`.
template <class T>
__device__ __forceinline__ void put_eight(T* __restrict__ row, int64_t col, int64_t width, bool whole,
                                          const float* values) {
    constexpr int size = Pack<T>::size;
#pragma unroll
    for (int i = 0; i < 8; i += size) {
        if (whole) {
            Pack<T> pack;
#pragma unroll
            for (int k = 0; k < size; k++) pack.at[k] = from_float<T>(values[i + k]);
            if (col + i < width)  // by name: the compiler makes four accesses of an assignment here
                __stwb(reinterpret_cast<uint4*>(row + col + i), *reinterpret_cast<const uint4*>(&pack));
        } else {
#pragma unroll
            for (int k = 0; k < size; k++)
                if (col + i + k < width) row[col + i + k] = from_float<T>(values[i + k]);
        }
    }
}
__device__ __forceinline__ void eight_at(const float* from, float* values) {
    const float4 a = *reinterpret_cast<const float4*>(from), b = *reinterpret_cast<const float4*>(from + 4);
    values[0] = a.x, values[1] = a.y, values[2] = a.z, values[3] = a.w;
    values[4] = b.x, values[5] = b.y, values[6] = b.z, values[7] = b.w;
}
