#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// NaN is above all numbers, as in topk.
static bool above(float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

extern "C" void keep_largest(const float* x, float* out, int64_t rows, int64_t cols, int64_t k) {
#pragma omp parallel
    {
        std::vector<float> scratch(cols);
#pragma omp for
        for (int64_t r = 0; r < rows; ++r) {
            const float* row = x + r * cols;
            float* to = out + r * cols;
            std::copy(row, row + cols, scratch.begin());
            std::nth_element(scratch.begin(), scratch.begin() + (k - 1), scratch.end(), above);
            const float least = scratch[k - 1];
            int64_t equal = k;
            for (int64_t c = 0; c < cols; ++c) equal -= above(row[c], least);
            for (int64_t c = 0; c < cols; ++c) {
                const bool larger = above(row[c], least), same = !larger && !above(least, row[c]);
                to[c] = larger || (same && equal-- > 0) ? row[c] : 0.0f;
            }
        }
    }
}
