#include <cmath>
#include <cstdint>

extern "C" void both(const float* a, const float* b, bool* out, int64_t n) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) out[i] = a[i] > 0.0f && b[i] > 0.0f;
}
