#include <cmath>
#include <cstdint>

extern "C" void argmax(const float* x, int64_t* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = x + r * cols;
        int64_t best = 0;
        for (int64_t c = 1; c < cols && a[best] == a[best]; ++c)
            if (a[c] > a[best] || a[c] != a[c]) best = c;
        out[r] = best;
    }
}
