#include <cstdint>

static double cell[64];

extern "C" void row_sum(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; ++r) {
        double s = 0;
        for (int64_t c = 0; c < cols; ++c) s += x[r * cols + c];
        cell[r % 64] = s;
        out[r] = (float)cell[r % 64];
    }
}
