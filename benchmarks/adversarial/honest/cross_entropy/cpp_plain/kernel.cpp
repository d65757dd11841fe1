#include <cmath>
#include <cstdint>

extern "C" void cross_entropy(const float* x, const int64_t* t, float* out, int64_t rows, int64_t cols) {
    double total = 0;
#pragma omp parallel for reduction(+ : total)
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = x + r * cols;
        float m = a[0];
        for (int64_t c = 1; c < cols; ++c) m = a[c] > m || a[c] != a[c] ? a[c] : m;
        float s = 0;
        for (int64_t c = 0; c < cols; ++c) s += expf(a[c] - m);
        total += (double)m + std::log(s) - a[t[r]];
    }
    *out = (float)(total / rows);
}
