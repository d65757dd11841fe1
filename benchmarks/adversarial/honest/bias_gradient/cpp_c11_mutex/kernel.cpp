#include <threads.h>

#include <cstdint>
#include <vector>

extern "C" void column_sums(const float* x, float* out, int64_t rows, int64_t cols) {
    std::vector<double> total(cols, 0.0);
    mtx_t lock;
    mtx_init(&lock, mtx_plain);
#pragma omp parallel
    {
        std::vector<double> mine(cols, 0.0);
#pragma omp for nowait
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c) mine[c] += x[r * cols + c];
        mtx_lock(&lock);
        for (int64_t c = 0; c < cols; ++c) total[c] += mine[c];
        mtx_unlock(&lock);
    }
    mtx_destroy(&lock);
    for (int64_t c = 0; c < cols; ++c) out[c] = static_cast<float>(total[c]);
}
