#include <cmath>
#include <cstdint>

// both: rows x 2*hidden, gates before values. out: rows x hidden.
extern "C" void gelu_gate(const float* __restrict both, float* __restrict out, int64_t rows, int64_t hidden) {
#pragma omp parallel for schedule(static)
    for (int64_t r = 0; r < rows; ++r) {
        const float* gate = both + r * 2 * hidden;
        const float* value = gate + hidden;
        float* y = out + r * hidden;
#pragma omp simd
        for (int64_t c = 0; c < hidden; ++c) {
            const float x = gate[c];
            const float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x);
            y[c] = 0.5f * x * (1.0f + std::tanh(inner)) * value[c];
        }
    }
}
