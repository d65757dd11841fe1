#include <cstdint>

extern "C" void weights(const float* alpha, float* out, int64_t rays, int64_t samples) {
#pragma omp parallel for
    for (int64_t r = 0; r < rays; ++r) {
        const float* a = alpha + r * samples;
        float* y = out + r * samples;
        float product = 1.0f;
        for (int64_t s = 0; s < samples; ++s) {
            product *= 1.0f - a[s];
            y[s] = product;
        }
        for (int64_t s = 0; s < samples; ++s) y[s] = y[s] / (1.0f - a[s]) * a[s];
    }
}
