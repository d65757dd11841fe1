#include <cstdint>
#include <cstring>

extern "C" void partial_sums(const float* __restrict grad, double* __restrict scratch, int64_t rows, int64_t cols,
                             int64_t parts) {
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < parts; ++p) {
        double* sums = scratch + p * cols;
        std::memset(sums, 0, sizeof(double) * cols);
        const int64_t begin = rows * p / parts, end = rows * (p + 1) / parts;
        for (int64_t r = begin; r < end; ++r)
            for (int64_t c = 0; c < cols; ++c) sums[c] += grad[r * cols + c];
    }
}

extern "C" void combine(const double* __restrict scratch, float* __restrict out, int64_t cols, int64_t parts) {
    for (int64_t c = 0; c < cols; ++c) {
        double sum = 0.0;
        for (int64_t p = 0; p < parts; ++p) sum += scratch[p * cols + c];
        out[c] = static_cast<float>(sum);
    }
}
