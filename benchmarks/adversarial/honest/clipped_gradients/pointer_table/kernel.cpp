// Several tensors in one launch, as in multi-tensor apply: tables of addresses and lengths.
#include <algorithm>
#include <cstdint>

namespace {
constexpr int64_t kChunk = 32768;

inline const float* address(const int64_t* table, int64_t k) {
    return reinterpret_cast<const float*>(static_cast<uintptr_t>(table[k]));
}
inline int64_t chunks(int64_t n) { return (n + kChunk - 1) / kChunk; }
}  // namespace

extern "C" int64_t count_chunks(const int64_t* lengths, int64_t tensors) {
    int64_t count = 0;
    for (int64_t k = 0; k < tensors; ++k) count += chunks(lengths[k]);
    return count;
}

// One partial sum for each chunk, so that the answer does not depend on the number of threads.
extern "C" double sum_of_squares(const int64_t* table, const int64_t* lengths, int64_t tensors, double* partial) {
    int64_t done = 0;
    for (int64_t k = 0; k < tensors; ++k) {
        const float* x = address(table, k);
        const int64_t count = chunks(lengths[k]);
#pragma omp parallel for
        for (int64_t c = 0; c < count; ++c) {
            const int64_t end = std::min(lengths[k], (c + 1) * kChunk);
            double sum = 0.0;
            for (int64_t i = c * kChunk; i < end; ++i) sum += static_cast<double>(x[i]) * x[i];
            partial[done + c] = sum;
        }
        done += count;
    }
    double total = 0.0;
    for (int64_t c = 0; c < done; ++c) total += partial[c];
    return total;
}

extern "C" void scale_all(const int64_t* from, const int64_t* to, const int64_t* lengths, int64_t tensors, float by) {
    for (int64_t k = 0; k < tensors; ++k) {
        const float* x = address(from, k);
        float* y = const_cast<float*>(address(to, k));
#pragma omp parallel for simd
        for (int64_t i = 0; i < lengths[k]; ++i) y[i] = x[i] * by;
    }
}
