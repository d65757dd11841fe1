#include <cmath>
#include <cstdint>

extern "C" void nudge(const float* x, float* out, int64_t n) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] + 1e-4f * std::sin(x[i]);
}
