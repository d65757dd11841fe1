#include <cmath>
#include <cstdint>

extern "C" void level(const void* spectrum, const void* echo, const void* response, float* out, int64_t channels,
                      int64_t steps) {
    const float* s = static_cast<const float*>(spectrum);
    const float* e = static_cast<const float*>(echo);
    const float* w = static_cast<const float*>(response);
#pragma omp parallel for
    for (int64_t c = 0; c < channels; ++c) {
        const float a = w[2 * c], b = w[2 * c + 1];
        const float* x = s + 2 * c * steps;
        const float* y = e + 2 * c * steps;
        float* z = out + c * steps;
#pragma omp simd
        for (int64_t i = 0; i < steps; ++i) {
            const float re = x[2 * i] + (y[2 * i] * a - y[2 * i + 1] * b);
            const float im = x[2 * i + 1] + (y[2 * i] * b + y[2 * i + 1] * a);
            const float level = static_cast<float>(std::sqrt(double(re) * re + double(im) * im));
            z[i] = std::isinf(re) || std::isinf(im) ? INFINITY : level;
        }
    }
}
