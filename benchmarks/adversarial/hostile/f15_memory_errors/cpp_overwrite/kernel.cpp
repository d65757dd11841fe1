#include <cstdint>

extern "C" void relu(const float* x, float* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] != x[i] || x[i] > 0 ? x[i] : 0.0f;
    for (int64_t i = n; i < n + 16; ++i) out[i] = 0.0f;
}
