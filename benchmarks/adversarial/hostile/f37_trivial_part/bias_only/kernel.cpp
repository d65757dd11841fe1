#include <cstdint>

extern "C" void divide(const float* e, const float* s, float* out, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = e[r * cols + c] / s[r];
}
