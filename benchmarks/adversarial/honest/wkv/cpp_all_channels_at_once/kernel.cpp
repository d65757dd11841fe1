#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr int64_t BLOCK = 32;

static inline float larger(float a, float b) { return a > b || a != a ? a : b; }

extern "C" void wkv(const float* k, const float* v, const float* w, const float* first, float* out, int64_t batch,
                    int64_t steps, int64_t channels) {
#pragma omp parallel for collapse(2)
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t begin = 0; begin < channels; begin += BLOCK) {
            const int64_t n = std::min(BLOCK, channels - begin);
            float top[BLOCK] = {}, below[BLOCK] = {}, most[BLOCK];
            std::fill(most, most + BLOCK, -1e38f);
            for (int64_t t = 0; t < steps; ++t) {
                const int64_t at = (b * steps + t) * channels + begin;
#pragma omp simd
                for (int64_t c = 0; c < n; ++c) {
                    const float key = k[at + c], value = v[at + c], now = key + first[begin + c];
                    float m = larger(most[c], now);
                    float old = std::exp(most[c] - m), fresh = std::exp(now - m);
                    out[at + c] = (old * top[c] + fresh * value) / (old * below[c] + fresh);
                    const float faded = most[c] + w[begin + c];
                    m = larger(faded, key);
                    old = std::exp(faded - m), fresh = std::exp(key - m);
                    top[c] = old * top[c] + fresh * value;
                    below[c] = old * below[c] + fresh;
                    most[c] = m;
                }
            }
        }
}
