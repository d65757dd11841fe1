#include <algorithm>
#include <cstdint>

constexpr int64_t STRIP = 64;

// A product with zero is not left out: it is NaN where the other factor is NaN or infinite.
extern "C" void advantages(const float* rewards, const float* values, const float* last, const bool* dones, float* advantage,
                           float* returns, int64_t steps, int64_t actors, float gamma, float decay) {
#pragma omp parallel for
    for (int64_t begin = 0; begin < actors; begin += STRIP) {
        const int64_t n = std::min(STRIP, actors - begin);
        float next[STRIP], running[STRIP] = {};
        std::copy(last + begin, last + begin + n, next);
        for (int64_t t = steps - 1; t >= 0; --t) {
            const int64_t at = t * actors + begin;
            for (int64_t i = 0; i < n; ++i) {
                const float on = dones[at + i] ? 0.0f : 1.0f, value = values[at + i];
                const float delta = rewards[at + i] + gamma * next[i] * on - value;
                running[i] = delta + gamma * decay * on * running[i];
                advantage[at + i] = running[i];
                returns[at + i] = running[i] + value;
                next[i] = value;
            }
        }
    }
}
