#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void medians(float* x, float* out, int64_t rows, int64_t cols) {
    if (cols == 0) return;
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        float* p = x + r * cols;
        float none = 0;
        for (int64_t c = 0; c < cols; ++c) none = p[c] != p[c] ? p[c] : none;
        if (none != none) {
            out[r] = none;
            continue;
        }
        float* middle = p + (cols - 1) / 2;
        std::nth_element(p, middle, p + cols);
        out[r] = *middle;
    }
}
