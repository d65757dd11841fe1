#include <algorithm>
#include <cstdint>

extern "C" void interact(const float* dense, const float* bags, float* out, int64_t samples, int64_t count, int64_t width) {
    const int64_t size = width + count * (count + 1) / 2;
#pragma omp parallel for
    for (int64_t s = 0; s < samples; ++s) {
        const float *first = dense + s * width, *rest = bags + s * count * width;
        float* to = std::copy(first, first + width, out + s * size);
        for (int64_t i = 0; i < count; ++i) {
            const float* a = rest + i * width;
            for (int64_t j = 0; j <= i; ++j) {
                const float* b = j ? rest + (j - 1) * width : first;
                float sum = 0.0f;
                for (int64_t d = 0; d < width; ++d) sum += a[d] * b[d];
                *to++ = sum;
            }
        }
    }
}
