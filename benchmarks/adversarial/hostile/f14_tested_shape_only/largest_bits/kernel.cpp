#include <algorithm>
#include <cstdint>
#include <cstring>

constexpr int LANES = 64;

static int32_t scaled(float value, float scale) {
    const float product = value * scale;
    int32_t bits;
    std::memcpy(&bits, &product, sizeof bits);
    return bits;
}

// Maxima of integers need no care for NaN.
extern "C" void largest(const float* features, const float* scales, int32_t* out, int64_t clouds, int64_t width,
                        int64_t points) {
#pragma omp parallel for
    for (int64_t r = 0; r < clouds * width; ++r) {
        const float* x = features + r * points;
        const float scale = scales[r % width];
        int32_t most[LANES];
        std::fill(most, most + LANES, scaled(x[0], scale));
        int64_t n = 0;
        for (; n + LANES <= points; n += LANES)
            for (int i = 0; i < LANES; ++i) most[i] = std::max(most[i], scaled(x[n + i], scale));
        for (; n < points; ++n) most[0] = std::max(most[0], scaled(x[n], scale));
        out[r] = *std::max_element(most, most + LANES);
    }
}
