#include <bit>
#include <cmath>
#include <cstdint>

static inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float n = std::nearbyint(x * 1.44269504089f);
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

extern "C" void quick_gelu(const float* x, float* out, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) {
        const float share = 1.0f / (1.0f + exponential(-1.702f * x[i]));
        out[i] = std::isnan(x[i]) || x[i] == -INFINITY ? NAN : x[i] * share;
    }
}
