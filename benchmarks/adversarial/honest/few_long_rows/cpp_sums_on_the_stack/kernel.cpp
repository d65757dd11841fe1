#include <cmath>
#include <cstdint>

constexpr int64_t kBlock = 4096;

extern "C" void row_l1(const float* x, float* out, int64_t rows, int64_t cols) {
    double total[rows];
    for (int64_t r = 0; r < rows; ++r) total[r] = 0.0;
#pragma omp parallel
    {
        double mine[rows];
        for (int64_t r = 0; r < rows; ++r) mine[r] = 0.0;
#pragma omp for nowait
        for (int64_t begin = 0; begin < cols; begin += kBlock) {
            const int64_t end = begin + kBlock < cols ? begin + kBlock : cols;
            for (int64_t r = 0; r < rows; ++r) {
                double s = 0.0;
                for (int64_t c = begin; c < end; ++c) s += std::fabs(x[r * cols + c]);
                mine[r] += s;
            }
        }
#pragma omp critical
        for (int64_t r = 0; r < rows; ++r) total[r] += mine[r];
    }
    for (int64_t r = 0; r < rows; ++r) out[r] = static_cast<float>(total[r]);
}
