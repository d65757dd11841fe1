#include <cmath>
#include <cstdint>

#include <algorithm>

extern "C" void linear(const float* x, const float* w, const float* b, float* y, int64_t m, int64_t k, int64_t n) {
#pragma omp parallel for
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float s = 0;
            for (int64_t p = 0; p < k; ++p) s += x[i * k + p] * w[j * k + p];
            y[i * n + j] = s + b[j];
        }
}
