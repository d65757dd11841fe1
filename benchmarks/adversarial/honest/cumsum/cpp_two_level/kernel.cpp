#include <cmath>
#include <cstdint>

extern "C" void cumsum(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        double base = 0;
        for (int64_t start = 0; start < cols; start += 256) {
            const int64_t end = start + 256 < cols ? start + 256 : cols;
            float s = 0;
            for (int64_t c = start; c < end; ++c) {
                s += x[r * cols + c];
                out[r * cols + c] = (float)(base + s);
            }
            base += s;
        }
    }
}
