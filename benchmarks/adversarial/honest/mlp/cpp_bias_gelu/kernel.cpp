#include <cmath>
#include <cstdint>

extern "C" void bias_gelu(float* h, const float* b, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
            const float v = h[r * cols + c] + b[c];
            h[r * cols + c] = 0.5f * v * (1.0f + erff(v * 0.70710678118654752f));
        }
}
