#include <cmath>
#include <cstdint>

extern "C" void tanh2(const float* x, float* out, int64_t n) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) out[i] = 2.0f * std::tanh(x[i]);
}
