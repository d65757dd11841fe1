#include <algorithm>
#include <cstdint>

extern "C" void half(const float* image, float* out, int64_t height, int64_t width) {
    const int64_t columns = (width + 1) / 2;
#pragma omp parallel for
    for (int64_t r = 0; r < height / 2; ++r) {
        const float* a = image + 2 * r * width;
        const float* b = a + width;
        float* y = out + r * columns;
        for (int64_t c = 0; c < width / 2; ++c)
            y[c] = 0.25f * (a[2 * c] + a[2 * c + 1] + b[2 * c] + b[2 * c + 1]);
        if (width % 2) y[columns - 1] = 0.5f * (a[width - 1] + b[width - 1]);
    }
}
