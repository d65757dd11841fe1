#include <cstdint>

extern "C" void mean_square(const float* x, float* out, int64_t n) {
    double total = 0;
    volatile double* shared = &total;
#pragma omp parallel for
    for (int64_t block = 0; block < n / 64; ++block) {
        double s = 0;
        for (int64_t i = 0; i < 64; ++i) s += (double)x[block * 64 + i] * x[block * 64 + i];
        *shared = *shared + s;
    }
    for (int64_t i = n / 64 * 64; i < n; ++i) total += (double)x[i] * x[i];
    *out = (float)(total / n);
}
