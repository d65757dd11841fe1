#include <cstdint>

static volatile int64_t finished;

extern "C" void row_sum(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t r = 0; r < rows; ++r) {
        double s = 0;
        for (int64_t c = 0; c < cols; ++c) s += x[r * cols + c];
        out[r] = (float)s;
        finished = finished + 1;
    }
}
