#include <cstdint>

extern "C" void row_sum(const float* x, float* out, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
        out[r] = 0;
        for (int64_t c = 0; c < cols; ++c) out[r] += x[r * cols + c];
    }
}
