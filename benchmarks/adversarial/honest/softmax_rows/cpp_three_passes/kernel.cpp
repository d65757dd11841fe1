#include <cmath>
#include <cstdint>

extern "C" void softmax(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = x + r * cols;
        float* o = out + r * cols;
        float m = -INFINITY;
        for (int64_t c = 0; c < cols; ++c) m = a[c] > m || a[c] != a[c] ? a[c] : m;
        float s = 0;
        for (int64_t c = 0; c < cols; ++c) s += o[c] = expf(a[c] - m);
        const float inverse = 1.0f / s;
        for (int64_t c = 0; c < cols; ++c) o[c] *= inverse;
    }
}
