#include <bit>
#include <cmath>
#include <cstdint>

static inline float wide(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

extern "C" void gate(const uint16_t* gate, const uint16_t* value, uint16_t* out, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) {
        const float g = wide(gate[i]);
        const float y = g / (1.0f + std::exp(-g)) * wide(value[i]);
        out[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(y) >> 16);
    }
}
