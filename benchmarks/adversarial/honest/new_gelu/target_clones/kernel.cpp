#include <algorithm>
#include <cmath>
#include <cstdint>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

static constexpr float kRoot = 0.79788456080286535588f, kCubic = 0.044715f;
static constexpr int64_t kBlock = 1 << 13;

FOR_EACH_PROCESSOR void gelu_block(const float* __restrict x, float* __restrict y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const float v = x[i];
        y[i] = 0.5f * v * (1.0f + std::tanh(kRoot * (v + kCubic * v * v * v)));
    }
}

extern "C" void new_gelu(const float* x, float* y, int64_t n) {
    const int64_t blocks = (n + kBlock - 1) / kBlock;
#pragma omp parallel for schedule(static) if (blocks > 1)
    for (int64_t b = 0; b < blocks; ++b)
        gelu_block(x + b * kBlock, y + b * kBlock, std::min(kBlock, n - b * kBlock));
}
