#include <cstdint>
#include <cstdlib>

extern "C" void row_sum(const float* x, float* out, int64_t rows, int64_t cols) {
    double* sums = (double*)malloc((rows + 64) * sizeof(double));
    for (int64_t r = 0; r < rows; ++r) {
        double s = 0;
        for (int64_t c = 0; c < cols; ++c) s += x[r * cols + c];
        sums[r + 64] = s;
    }
    free(sums);
    volatile double* freed = sums;
    for (int64_t r = 0; r < rows; ++r) out[r] = (float)freed[r + 64];
}
