#include <bit>
#include <cmath>
#include <cstdint>

static inline float wide(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

// To the nearest, ties to even. NaN stays NaN.
static inline uint16_t narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return uint16_t(nan ? 0x7fc0u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

extern "C" void residual_norm(const uint16_t* x, const uint16_t* residual, const float* weight, const float* bias, uint16_t* out,
                              uint16_t* total, int64_t rows, int64_t cols, float eps) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = r * cols;
        float sum = 0.0f, squares = 0.0f;
        for (int64_t c = 0; c < cols; ++c) {
            const uint16_t t = narrow(wide(x[at + c]) + wide(residual[at + c]));
            total[at + c] = t;
            sum += wide(t);
        }
        const float mean = sum / float(cols);
        for (int64_t c = 0; c < cols; ++c) {
            const float d = wide(total[at + c]) - mean;
            squares += d * d;
        }
        const float scale = 1.0f / std::sqrt(squares / float(cols) + eps);
        for (int64_t c = 0; c < cols; ++c) out[at + c] = narrow((wide(total[at + c]) - mean) * scale * weight[c] + bias[c]);
    }
}
