#include <cmath>
#include <cstdint>
#include <limits>

namespace {
constexpr float kNothing = -std::numeric_limits<float>::infinity();

inline void one_row(float* s, const uint8_t* seen, int64_t n, float scale) {
    float most = kNothing;
    for (int64_t j = 0; j < n; ++j) {
        s[j] = seen[j] ? s[j] * scale : kNothing;
        most = s[j] > most ? s[j] : most;
    }
    float total = 0.0f;
    for (int64_t j = 0; j < n; ++j) {
        s[j] = std::exp(s[j] - most);
        total += s[j];
    }
    for (int64_t j = 0; j < n; ++j) s[j] /= total;
}
}  // namespace

extern "C" {

void masked_softmax_(float* scores, const uint8_t* mask, int64_t rows, int64_t keys, float scale) {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; ++r) one_row(scores + r * keys, mask + r * keys, keys, scale);
}

}
