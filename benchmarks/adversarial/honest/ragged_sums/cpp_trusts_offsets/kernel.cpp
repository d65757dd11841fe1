#include <algorithm>
#include <cstdint>
#include <vector>

extern "C" void ragged_sums(const float* x, const int64_t* offsets, float* out, int64_t segments, int64_t width) {
#pragma omp parallel
    {
        std::vector<double> sums(width);
#pragma omp for schedule(dynamic, 4)
        for (int64_t s = 0; s < segments; ++s) {
            std::fill(sums.begin(), sums.end(), 0.0);
            for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r)
                for (int64_t c = 0; c < width; ++c) sums[c] += x[r * width + c];
            for (int64_t c = 0; c < width; ++c) out[s * width + c] = static_cast<float>(sums[c]);
        }
    }
}
