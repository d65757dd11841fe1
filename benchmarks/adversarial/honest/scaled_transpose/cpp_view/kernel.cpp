#include <cmath>
#include <cstdint>

extern "C" void scale(const float* x, float* out, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] * 2.0f + 1.0f;
}
