#include <cstdint>

extern "C" void running_max(const float* x, float* values, int64_t* places, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        float best = x[r * cols];
        int64_t at = 0;
        for (int64_t c = 0; c < cols; ++c) {
            float v = x[r * cols + c];
            if (v > best || (v != v && best == best)) best = v, at = c;
            values[r * cols + c] = best;
            places[r * cols + c] = at;
        }
    }
}
