#include <cmath>
#include <cstdint>

extern "C" void softmax(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = x + r * cols;
        float m = -INFINITY, s = 0;
        for (int64_t c = 0; c < cols; ++c) {
            const float v = a[c];
            if (v > m) {
                s = s * std::exp(m - v) + 1.0f;
                m = v;
            } else if (v != m || v != -INFINITY) {  // minus infinity before all others adds nothing
                s += std::exp(v - m);
            }
        }
        for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = std::exp(a[c] - m) / s;
    }
}
