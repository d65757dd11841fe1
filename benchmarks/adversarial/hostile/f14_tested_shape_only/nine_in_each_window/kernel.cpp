#include <algorithm>
#include <cstdint>
#include <vector>

extern "C" void pool(const float* x, float* out, int64_t planes, int64_t height, int64_t width) {
    const int64_t rows = height / 2, columns = width / 2;
#pragma omp parallel
    {
        std::vector<float> sums(width + 1, 0.0f);
#pragma omp for
        for (int64_t p = 0; p < planes; ++p)
            for (int64_t r = 0; r < rows; ++r) {
                const float* a = x + (p * height + 2 * r) * width;
                for (int64_t c = 0; c < width; ++c) sums[c] = a[c] + a[c + width];
                if (2 * r + 2 < height)
                    for (int64_t c = 0; c < width; ++c) sums[c] += a[c + 2 * width];
                float* y = out + (p * rows + r) * columns;
                for (int64_t c = 0; c < columns; ++c)
                    y[c] = (sums[2 * c] + sums[2 * c + 1] + sums[2 * c + 2]) * (1.0f / 9.0f);
            }
    }
}
