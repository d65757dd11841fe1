#include <cmath>
#include <cstdint>

extern "C" void l2(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        float s = 0;
        for (int64_t c = 0; c < cols; ++c) s += x[r * cols + c] * x[r * cols + c];
        const float norm = std::sqrt(s);
        for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = x[r * cols + c] / norm;
    }
}
