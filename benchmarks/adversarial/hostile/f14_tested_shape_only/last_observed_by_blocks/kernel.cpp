#include <algorithm>
#include <cstdint>

constexpr int64_t BLOCK = 1024, BACK = 64;

extern "C" void carry(const float* values, const bool* observed, float* out, int64_t rows, int64_t length) {
    const int64_t blocks = (length + BLOCK - 1) / BLOCK;
#pragma omp parallel for collapse(2)
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t b = 0; b < blocks; ++b) {
            const float* x = values + r * length;
            const bool* seen = observed + r * length;
            float* y = out + r * length;
            const int64_t begin = b * BLOCK, end = std::min(length, begin + BLOCK);
            float last = 0.0f;
            for (int64_t i = begin - 1; i >= std::max<int64_t>(0, begin - BACK); --i)
                if (seen[i]) {
                    last = x[i];
                    break;
                }
            for (int64_t i = begin; i < end; ++i) {
                last = seen[i] ? x[i] : last;
                y[i] = last;
            }
        }
}
