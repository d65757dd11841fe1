#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

extern "C" void filled_softmax(const float* scores, const uint8_t* mask, float* out, int64_t rows, int64_t width) {
    constexpr float hidden = -1e9f;
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; ++r) {
        const float* x = scores + r * width;
        const uint8_t* m = mask + r * width;
        float* y = out + r * width;
        float most = -std::numeric_limits<float>::infinity(), sum = 0.0f;
        for (int64_t i = 0; i < width; ++i) {
            y[i] = m[i] ? x[i] : hidden;
            most = std::max(most, y[i]);
        }
        for (int64_t i = 0; i < width; ++i) {
            y[i] = std::exp(y[i] - most);
            sum += y[i];
        }
        for (int64_t i = 0; i < width; ++i) y[i] /= sum;
    }
}
