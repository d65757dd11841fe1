// Tensor cores by nvcuda::wmma, for 16-bit floats: exact products, added in float.
#pragma once

#include "narrow.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
    static constexpr int rows = std::is_same_v<Use, matrix_b> ? k : m, cols = std::is_same_v<Use, matrix_a> ? k : n;
    static constexpr int num_elements = rows * cols / 32;
    using element_type = T;
    T x[num_elements];

    // Place of element i of this lane: 16 x 16 elements as an accumulator has them since sm_80, others by a
    // permutation. A loop that copies by lanes never writes just what its own lane reads, so it needs a barrier.
    static std::pair<int, int> at(int i) {
        const int lane = static_cast<int>(cuda_on_cpu::lane()), place = i * 32 + (lane * 5 + i * 7) % 32;
        if constexpr (rows == 16 && cols == 16)
            return {lane / 4 + 8 * (i / 2 % 2), lane % 4 * 2 + i % 2 + 8 * (i / 4)};
        return {place / cols, place % cols};
    }
};

template <class T>
void check_matrix(const T* memory, unsigned stride, int line) {
    if (reinterpret_cast<uintptr_t>(memory) % 32)
        cuda_on_cpu::fail("a matrix of wmma must begin at a multiple of 32 bytes", line);
    if (stride * sizeof(T) % 16) cuda_on_cpu::fail("a row of a wmma matrix must be a multiple of 16 bytes", line);
}

// Each lane reads and writes its own elements; nothing here orders the lanes' other accesses, as on a GPU.
template <class Use, int m, int n, int k, class T, class Layout>
void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& a, const T* from, unsigned stride, CUDA_ON_CPU_LINE) {
    check_matrix(from, stride, line);
    for (int i = 0; i < a.num_elements; i++) {
        const auto [row, col] = a.at(i);
        a.x[i] = std::is_same_v<Layout, col_major> ? from[col * stride + row] : from[row * stride + col];
    }
}
template <int m, int n, int k, class T>
void load_matrix_sync(fragment<accumulator, m, n, k, T>& c, const T* from, unsigned stride, layout_t layout,
                      CUDA_ON_CPU_LINE) {
    check_matrix(from, stride, line);
    for (int i = 0; i < c.num_elements; i++) {
        const auto [row, col] = c.at(i);
        c.x[i] = layout == mem_col_major ? from[col * stride + row] : from[row * stride + col];
    }
}
template <int m, int n, int k, class T>
void store_matrix_sync(T* to, const fragment<accumulator, m, n, k, T>& c, unsigned stride, layout_t layout,
                       CUDA_ON_CPU_LINE) {
    check_matrix(to, stride, line);
    for (int i = 0; i < c.num_elements; i++) {
        const auto [row, col] = c.at(i);
        (layout == mem_col_major ? to[col * stride + row] : to[row * stride + col]) = c.x[i];
    }
}
template <class Use, int m, int n, int k, class T, class Layout>
void fill_fragment(fragment<Use, m, n, k, T, Layout>& a, std::type_identity_t<T> value) {
    for (T& x : a.x) x = value;
}

// d = a b + c by the lanes of a whole warp, which show one another their elements of a and b.
template <int m, int n, int k, class A, class B, class LayoutA, class LayoutB, class C, class D>
__attribute__((noinline, no_sanitize("kernel-address"))) void mma_sync(
    fragment<accumulator, m, n, k, D>& d, const fragment<matrix_a, m, n, k, A, LayoutA>& a,
    const fragment<matrix_b, m, n, k, B, LayoutB>& b, const fragment<accumulator, m, n, k, C>& c,
    CUDA_ON_CPU_LINE) {
    static_assert(std::is_same_v<A, B> && sizeof(A) == 2, "the emulator's tensor cores multiply 16-bit floats");
    static_assert(m * k <= 512 && k * n <= 512);
    float *of_a = cuda_on_cpu::warp_memory(), *of_b = of_a + 512;
    for (int i = 0; i < a.num_elements; i++) of_a[a.at(i).first * k + a.at(i).second] = a.x[i];
    for (int i = 0; i < b.num_elements; i++) of_b[b.at(i).first * n + b.at(i).second] = b.x[i];
    if (cuda_on_cpu::warp_operation(cuda_on_cpu::Operation::meet, ~0u, 1, 0, line) != ~0u)
        cuda_on_cpu::fail("a product of matrices needs all 32 lanes of a warp", line);
    for (int i = 0; i < d.num_elements; i++) {
        const auto [row, col] = d.at(i);
        float sum = c.x[i];
        for (int j = 0; j < k; j++) sum += of_a[row * k + j] * of_b[j * n + col];
        d.x[i] = sum;
    }
    cuda_on_cpu::warp_operation(cuda_on_cpu::Operation::meet, ~0u, 1, 0, line);
}

}  // namespace nvcuda::wmma
