#include <cmath>
#include <cstdint>

extern "C" void moments(const float* x, float* mean, float* var, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        double m = 0, m2 = 0;
        for (int64_t c = 0; c < cols; ++c) {
            const double v = x[r * cols + c], d = v - m;
            m += d / (c + 1);
            m2 += d * (v - m);
        }
        mean[r] = (float)m;
        var[r] = (float)(m2 / cols);
    }
}
