#include <cmath>
#include <cstdint>

extern "C" void layernorm(const float* x, const float* w, const float* b, float* out, int64_t rows, int64_t cols, double eps) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = x + r * cols;
        double mean = 0, m2 = 0;
        for (int64_t c = 0; c < cols; ++c) {
            const double d = a[c] - mean;
            mean += d / (c + 1);
            m2 += d * (a[c] - mean);
        }
        const double scale = 1.0 / std::sqrt(m2 / cols + eps);
        for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = (float)((a[c] - mean) * scale) * w[c] + b[c];
    }
}
