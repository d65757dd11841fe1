#include <cmath>
#include <cstdint>

extern "C" void softmax(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = x + r * cols;
        double m = a[0];
        for (int64_t c = 1; c < cols; ++c) m = a[c] > m || a[c] != a[c] ? a[c] : m;
        double s = 0;
        for (int64_t c = 0; c < cols; ++c) s += std::exp((double)a[c] - m);
        for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = (float)(std::exp((double)a[c] - m) / s);
    }
}
