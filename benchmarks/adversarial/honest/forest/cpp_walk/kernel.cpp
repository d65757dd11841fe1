#include <algorithm>
#include <cstdint>

constexpr int64_t ROWS = 16;

extern "C" void forest(const float* x, const int64_t* features, const float* thresholds, const float* leaves, float* out,
                       int64_t rows, int64_t columns, int64_t trees, int64_t depth) {
    const int64_t inner = (int64_t(1) << depth) - 1;
#pragma omp parallel for
    for (int64_t begin = 0; begin < rows; begin += ROWS) {
        const int64_t n = std::min(ROWS, rows - begin);
        float sums[ROWS] = {};
        for (int64_t t = 0; t < trees; ++t) {
            const int64_t* feature = features + t * inner;
            const float *threshold = thresholds + t * inner, *leaf = leaves + t * (inner + 1);
            int64_t node[ROWS] = {};
            for (int64_t d = 0; d < depth; ++d)
                for (int64_t r = 0; r < n; ++r) {
                    const float value = x[(begin + r) * columns + feature[node[r]]];
                    node[r] = 2 * node[r] + 1 + (value > threshold[node[r]]);
                }
            for (int64_t r = 0; r < n; ++r) sums[r] += leaf[node[r] - inner];
        }
        for (int64_t r = 0; r < n; ++r) out[begin + r] = sums[r] / float(trees);
    }
}
