#include <cmath>
#include <cstdint>

extern "C" void layernorm(const float* x, const float* w, const float* b, float* out, int64_t rows, int64_t cols, double eps) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = x + r * cols;
        float s = 0, q = 0;
        for (int64_t c = 0; c < cols; ++c) s += a[c];
        const float mean = s / cols;
        for (int64_t c = 0; c < cols; ++c) q += (a[c] - mean) * (a[c] - mean);
        const float scale = 1.0f / std::sqrt(q / cols + (float)eps);
        for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = (a[c] - mean) * scale * w[c] + b[c];
    }
}
