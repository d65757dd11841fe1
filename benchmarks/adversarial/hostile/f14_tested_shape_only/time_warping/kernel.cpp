#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

constexpr int64_t S = 16;  // series at a time

extern "C" void warp(const float* x, const float* y, float* out, int64_t count, int64_t length, int64_t band) {
#pragma omp parallel for
    for (int64_t first = 0; first < count; first += S) {
        const int64_t here = std::min(S, count - first);
        std::vector<float> a(length * S, 0.0f), b(length * S, 0.0f), row((length + 1) * S, INFINITY);
        for (int64_t s = 0; s < here; ++s)
            for (int64_t i = 0; i < length; ++i) {
                a[i * S + s] = x[(first + s) * length + i];
                b[i * S + s] = y[(first + s) * length + i];
            }
        for (int64_t s = 0; s < S; ++s) row[s] = 0.0f;
        for (int64_t i = 0; i < length; ++i) {
            const int64_t low = std::max<int64_t>(0, i - band), high = std::min(length, i + band + 1);
            float diagonal[S], left[S];
            for (int64_t s = 0; s < S; ++s) {
                diagonal[s] = row[low * S + s];
                left[s] = INFINITY;
                row[low * S + s] = INFINITY;
            }
            for (int64_t j = low; j < high; ++j) {
                float* above = &row[(j + 1) * S];
                const float *p = &a[i * S], *q = &b[j * S];
#pragma omp simd
                for (int64_t s = 0; s < S; ++s) {
                    const float up = above[s];
                    const float least = std::min(std::min(up, left[s]), diagonal[s]);
                    left[s] = std::fabs(p[s] - q[s]) + least;
                    diagonal[s] = up;
                    above[s] = left[s];
                }
            }
        }
        for (int64_t s = 0; s < here; ++s) out[first + s] = row[length * S + s];
    }
}
