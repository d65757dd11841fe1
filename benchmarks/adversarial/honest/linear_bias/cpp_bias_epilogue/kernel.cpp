#include <cmath>
#include <cstdint>

extern "C" void add_bias(float* y, const float* bias, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) y[r * cols + c] += bias[c];
}
