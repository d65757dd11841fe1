#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

extern "C" void masked(const _Float16* scores, const uint8_t* mask, _Float16* out, int64_t rows, int64_t width) {
    constexpr float nothing = -std::numeric_limits<float>::infinity();
#pragma omp parallel
    {
        std::vector<float> wide(width);
#pragma omp for
        for (int64_t r = 0; r < rows; ++r) {
            float top = nothing, sum = 0;
            for (int64_t i = 0; i < width; ++i) {
                wide[i] = mask[r * width + i] ? float(scores[r * width + i]) * 0.125f : nothing;
                top = wide[i] > top ? wide[i] : top;
            }
#pragma omp simd reduction(+ : sum)
            for (int64_t i = 0; i < width; ++i) sum += wide[i] = std::exp(wide[i] - top);  // NaN if all are masked
            for (int64_t i = 0; i < width; ++i) out[r * width + i] = _Float16(wide[i] / sum);
        }
    }
}
