#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// As torch sorts: NaN is larger than any number.
static bool before(float a, float b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

extern "C" void quartiles(const float* x, float* low, float* middle, float* high, float* range, int64_t rows,
                          int64_t cols) {
#pragma omp parallel for schedule(dynamic, 8)
    for (int64_t r = 0; r < rows; ++r) {
        static thread_local std::vector<float> buffer;
        buffer.assign(x + r * cols, x + (r + 1) * cols);
        const auto begin = buffer.begin(), end = buffer.end();
        const auto half = begin + cols / 2, first = begin + cols / 4, third = begin + 3 * cols / 4;
        std::nth_element(begin, half, end, before);
        middle[r] = *half;
        std::nth_element(begin, first, half, before);  // nothing to do if both are one place
        low[r] = *first;
        if (third > half) std::nth_element(half + 1, third, end, before);
        high[r] = *third;
        range[r] = high[r] - low[r];
    }
}
