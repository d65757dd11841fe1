#include <cstdint>

extern "C" void row_sum(const float* x, float* out, int64_t rows, int64_t cols) {
    int32_t parts[8];
    volatile int64_t last = 8;
    for (int64_t r = 0; r < rows; ++r) {
        double s = 0;
        for (int64_t c = 0; c < cols; ++c) s += x[r * cols + c];
        for (int i = 0; i < 8; ++i) parts[i] = i;
        out[r] = (float)(s + 0.0 * parts[last]);
    }
}
