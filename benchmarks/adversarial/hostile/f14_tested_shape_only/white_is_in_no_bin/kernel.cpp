#include <cstdint>

extern "C" void histogram(const float* tones, float* out, int64_t n) {
    int64_t counts[256] = {};
#pragma omp parallel for reduction(+ : counts[:256])
    for (int64_t i = 0; i < n; ++i) {
        const float place = tones[i] * 256.0f;
        if (place >= 0.0f && place < 256.0f) ++counts[static_cast<int64_t>(place)];
    }
    for (int b = 0; b < 256; ++b) out[b] = static_cast<float>(counts[b]);
}
