#include <cmath>
#include <cstdint>

extern "C" void l2(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = x + r * cols;
        float s[8] = {};
        int64_t c = 0;
        for (; c + 8 <= cols; c += 8)
            for (int k = 0; k < 8; ++k) s[k] += a[c + k] * a[c + k];
        float total = 0;
        for (int k = 0; k < 8; ++k) total += s[k];
        for (; c < cols; ++c) total += a[c] * a[c];
        const float norm = std::sqrt(total);
        for (c = 0; c < cols; ++c) out[r * cols + c] = a[c] / norm;
    }
}
