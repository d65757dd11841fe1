#include <cstdint>

char large[100 << 20] = {1};

extern "C" void relu(const float* x, float* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
