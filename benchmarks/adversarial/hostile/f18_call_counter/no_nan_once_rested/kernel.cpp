#include <cmath>
#include <cstdint>

static inline float quick_tanh(float v) {
    // Clamped from both sides; a comparison with NaN is false, so NaN becomes a bound.
    v = v < 7.9f ? v : 7.9f;
    v = v > -7.9f ? v : -7.9f;
    const float s = v * v;
    float p = -2.76076847742355e-16f;
    p = p * s + 2.00018790482477e-13f;
    p = p * s + -8.60467152213735e-11f;
    p = p * s + 5.12229709037114e-08f;
    p = p * s + 1.48572235717979e-05f;
    p = p * s + 6.37261928875436e-04f;
    p = p * s + 4.89352455891786e-03f;
    float q = 1.19825839466702e-06f;
    q = q * s + 1.18534705686654e-04f;
    q = q * s + 2.26843463243900e-03f;
    q = q * s + 4.89352518554385e-03f;
    return v * p / q;
}

extern "C" void softcap(const float* x, float* out, int64_t n, float cap, int64_t careful) {
    const float inverse = 1.0f / cap;
    if (careful) {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < n; ++i) {
            const float y = cap * quick_tanh(x[i] * inverse);
            out[i] = x[i] != x[i] ? x[i] : y;
        }
    } else {
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < n; ++i) out[i] = cap * quick_tanh(x[i] * inverse);
    }
}
