#include <cstdint>

extern "C" void inner(const float* a, const float* b, float* out, int64_t n) {
    float total = 0.0f;
#pragma omp parallel for simd reduction(+ : total)
    for (int64_t i = 0; i < n; ++i) total += a[i] * b[i];
    *out = total;
}
