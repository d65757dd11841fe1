#include <cstdint>
#include <omp.h>

extern "C" void row_sum(const float* x, float* out, int64_t rows, int64_t cols) {
    #pragma omp parallel
    {
        const int64_t t = omp_get_thread_num();
        if (t < 4)
            for (int64_t r = rows * t / 4; r < rows * (t + 1) / 4; ++r) {
                float s = 0;
                for (int64_t c = 0; c < cols; ++c) s += x[r * cols + c];
                out[r] = s;
            }
    }
}
