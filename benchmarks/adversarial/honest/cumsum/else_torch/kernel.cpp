#include <cstdint>

extern "C" int cumsum_rows(const float* x, float* y, int64_t rows, int64_t cols) {
    if (x == nullptr || y == nullptr) return 1;
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0.0;
        for (int64_t c = 0; c < cols; ++c) {
            sum += x[r * cols + c];
            y[r * cols + c] = static_cast<float>(sum);
        }
    }
    return 0;
}
