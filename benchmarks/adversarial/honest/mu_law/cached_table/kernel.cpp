#include <cstdint>

extern "C" void decode(const uint8_t* codes, const float* table, const float* gain, float* out, int64_t batch,
                       int64_t channels, int64_t samples) {
#pragma omp parallel for collapse(2)
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t c = 0; c < channels; ++c) {
            const int64_t start = (b * channels + c) * samples;
            float scaled[256];
            for (int v = 0; v < 256; ++v) scaled[v] = table[v] * gain[c];
            for (int64_t i = 0; i < samples; ++i) out[start + i] = scaled[codes[start + i]];
        }
}
