#include <cmath>
#include <cstdint>

extern "C" void frobenius(const float* x, float* out, int64_t n) {
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int64_t i = 0; i < n; ++i) s += (double)x[i] * x[i];
    const float norm = (float)std::sqrt(s);
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] / norm;
}
