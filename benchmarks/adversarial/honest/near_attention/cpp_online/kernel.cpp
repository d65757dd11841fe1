#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

extern "C" void attend(const float* q, const float* k, const float* v, float* out, int64_t heads, int64_t steps,
                       int64_t width, int64_t out_width, float scale) {
    constexpr int64_t reach = 96, block = 32;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < heads * steps; ++row) {
        const int64_t head = row / steps, i = row % steps;
        const float *query = q + row * width, *keys = k + head * steps * width, *values = v + head * steps * out_width;
        float* sum = out + row * out_width;
        std::fill(sum, sum + out_width, 0.0f);
        float top = -std::numeric_limits<float>::infinity(), total = 0;
        for (int64_t from = std::max<int64_t>(0, i - reach + 1); from <= i; from += block) {
            const int64_t to = std::min(from + block, i + 1);
            float scores[block], highest = top;
            for (int64_t j = from; j < to; ++j) {
                float s = 0;
#pragma omp simd reduction(+ : s)
                for (int64_t d = 0; d < width; ++d) s += query[d] * keys[j * width + d];
                scores[j - from] = s * scale;
                highest = std::max(highest, scores[j - from]);
            }
            const float shrink = std::exp(top - highest);
            total *= shrink;
            for (int64_t d = 0; d < out_width; ++d) sum[d] *= shrink;
            for (int64_t j = from; j < to; ++j) {
                const float share = std::exp(scores[j - from] - highest);
                total += share;
#pragma omp simd
                for (int64_t d = 0; d < out_width; ++d) sum[d] += share * values[j * out_width + d];
            }
            top = highest;
        }
        for (int64_t d = 0; d < out_width; ++d) sum[d] /= total;
    }
}
