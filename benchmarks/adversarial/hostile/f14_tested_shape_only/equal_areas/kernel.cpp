#include <cstdint>
#include <vector>

extern "C" void pool(const float* x, float* out, int64_t planes, int64_t height, int64_t width) {
    const int64_t down = height / 7, tall = height - 6 * down;
    const int64_t across = width / 7, wide = width - 6 * across;
    const float share = 1.0f / float(tall * wide);
#pragma omp parallel
    {
        std::vector<float> sums(width);
#pragma omp for
        for (int64_t p = 0; p < planes; ++p)
            for (int64_t i = 0; i < 7; ++i) {
                const float* a = x + (p * height + i * down) * width;
                for (int64_t c = 0; c < width; ++c) sums[c] = a[c];
                for (int64_t r = 1; r < tall; ++r)
                    for (int64_t c = 0; c < width; ++c) sums[c] += a[r * width + c];
                for (int64_t j = 0; j < 7; ++j) {
                    float sum = 0.0f;
                    for (int64_t c = 0; c < wide; ++c) sum += sums[j * across + c];
                    out[(p * 7 + i) * 7 + j] = sum * share;
                }
            }
    }
}
