#include <cmath>
#include <cstdint>

constexpr float ROOT = 0.7978845608028654f, CUBE = 0.044715f;

extern "C" void forward(const float* x, float* out, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) {
        const float v = x[i];
        out[i] = 0.5f * v * (1.0f + std::tanh(ROOT * (v + CUBE * v * v * v)));
    }
}

extern "C" void backward(const float* grad, const float* x, float* out, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) {
        const float v = x[i];
        const float t = std::tanh(ROOT * (v + CUBE * v * v * v));
        const float inner = ROOT * (1.0f + 3.0f * CUBE * v * v);
        out[i] = grad[i] * (0.5f * (1.0f + t) + 0.5f * v * (1.0f - t * t) * inner);
    }
}
