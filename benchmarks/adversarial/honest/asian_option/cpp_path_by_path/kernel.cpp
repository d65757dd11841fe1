#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr int64_t LANES = 16;

extern "C" void means(const float* normals, float* out, int64_t paths, int64_t steps, float drift, float spread) {
#pragma omp parallel for
    for (int64_t begin = 0; begin < paths; begin += LANES) {
        const int64_t n = std::min(LANES, paths - begin);
        float level[LANES] = {}, sum[LANES] = {};
        for (int64_t t = 0; t < steps; ++t)
#pragma omp simd
            for (int64_t i = 0; i < n; ++i) {
                level[i] += drift + spread * normals[(begin + i) * steps + t];
                sum[i] += std::exp(level[i]);
            }
        for (int64_t i = 0; i < n; ++i) out[begin + i] = sum[i] / float(steps);
    }
}
