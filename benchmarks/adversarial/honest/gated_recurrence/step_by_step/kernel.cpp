#include <cmath>
#include <cstdint>

extern "C" void first_step(const float* value, const float* gate, float* next, int64_t rows, int64_t width) {
#pragma omp simd
    for (int64_t i = 0; i < rows * width; ++i)
        next[i] = (1.0f - 1.0f / (1.0f + std::exp(-gate[i]))) * std::tanh(value[i]);
}

extern "C" void step(const float* gate, const float* value, const float* decay, const float* state, float* next,
                     int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = r * width;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) {
            const float before = state[at + c];
            const float g = 1.0f / (1.0f + std::exp(-(gate[at + c] + decay[c] * before)));
            next[at + c] = g * before + (1.0f - g) * std::tanh(value[at + c]);
        }
    }
}
