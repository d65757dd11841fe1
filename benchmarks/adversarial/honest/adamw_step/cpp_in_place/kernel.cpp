#include <cmath>
#include <cstdint>

extern "C" double adamw(float* p, const float* g, float* m, float* v, int64_t n, float a, float b) {
    double squares = 0.0;
#pragma omp parallel for simd reduction(+ : squares)
    for (int64_t i = 0; i < n; ++i) {
        m[i] += 0.1f * (g[i] - m[i]);
        v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
        const float change = 1e-2f * ((m[i] / a) / (std::sqrt(v[i] / b) + 1e-8f) + 0.05f * p[i]);
        p[i] -= change;
        squares += double(change) * double(change);
    }
    return std::sqrt(squares);
}
