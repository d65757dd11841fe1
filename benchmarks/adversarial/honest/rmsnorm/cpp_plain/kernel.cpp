#include <cmath>
#include <cstdint>

extern "C" void rmsnorm(const float* x, const float* w, float* out, int64_t rows, int64_t cols, float eps) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = x + r * cols;
        float s = 0;
        for (int64_t c = 0; c < cols; ++c) s += a[c] * a[c];
        const float scale = 1.0f / std::sqrt(s / cols + eps);
        for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = a[c] * scale * w[c];
    }
}
