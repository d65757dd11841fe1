#include <cmath>
#include <cstdint>

extern "C" void gaussian(const float* x, const float* y, float* out, int64_t rows, int64_t columns, int64_t width,
                         float rate, bool same) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = same ? i : 0; j < columns; ++j) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int64_t d = 0; d < width; ++d) {
                const float apart = x[i * width + d] - y[j * width + d];
                sum += apart * apart;
            }
            out[i * columns + j] = std::exp(-rate * sum);
            if (same) out[j * columns + i] = out[i * columns + j];
        }
}
