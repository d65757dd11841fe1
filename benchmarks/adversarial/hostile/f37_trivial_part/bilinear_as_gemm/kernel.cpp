#include <cstdint>

extern "C" void scale_and_shift(float* y, const float* scale, const float* shift, int64_t planes,
                                int64_t channels, int64_t size) {
#pragma omp parallel for
    for (int64_t p = 0; p < planes; ++p) {
        float* plane = y + p * size;
        const float a = scale[p % channels], b = shift[p % channels];
        for (int64_t i = 0; i < size; ++i) plane[i] = plane[i] * a + b;
    }
}
