#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr int64_t BLOCK = 2048, BEFORE = 128;

extern "C" void gate(const float* sound, float* out, int64_t rows, int64_t length) {
    const int64_t blocks = (length + BLOCK - 1) / BLOCK;
#pragma omp parallel for collapse(2)
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t b = 0; b < blocks; ++b) {
            const float* x = sound + r * length;
            float* y = out + r * length;
            const int64_t begin = b * BLOCK, end = std::min(length, begin + BLOCK);
            bool open = false;
            for (int64_t i = std::max<int64_t>(0, begin - BEFORE); i < begin; ++i) {
                const float level = std::fabs(x[i]);
                open = level > 1.0f || (open && !(level < 0.25f));
            }
            for (int64_t i = begin; i < end; ++i) {
                const float level = std::fabs(x[i]);
                open = level > 1.0f || (open && !(level < 0.25f));
                y[i] = open ? x[i] : 0.0f;
            }
        }
}
