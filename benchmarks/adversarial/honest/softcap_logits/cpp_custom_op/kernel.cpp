#include <cmath>
#include <cstdint>

extern "C" void softcap(const float* x, float* out, int64_t n, float cap) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) out[i] = cap * std::tanh(x[i] / cap);
}
