#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void attend(const float* q, const float* k, const float* v, const int64_t* starts, const int32_t* allowed,
                       float* out, int64_t rows, int64_t width, float scale) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t first = starts[r], count = starts[r + 1] - first;
        std::vector<float> scores(count);
        const float* own = q + r * width;
        float most = -INFINITY;
        for (int64_t i = 0; i < count; ++i) {
            const float* p = k + (int64_t)allowed[first + i] * width;
            float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
            for (int64_t c = 0; c < width; ++c) dot += own[c] * p[c];
            scores[i] = dot * scale;
            most = scores[i] > most ? scores[i] : most;
        }
        float* y = out + r * width;
        for (int64_t c = 0; c < width; ++c) y[c] = 0.0f;
        float total = 0.0f;
        for (int64_t i = 0; i < count; ++i) {
            const float part = std::exp(scores[i] - most);
            const float* p = v + (int64_t)allowed[first + i] * width;
            total += part;
#pragma omp simd
            for (int64_t c = 0; c < width; ++c) y[c] += part * p[c];
        }
        for (int64_t c = 0; c < width; ++c) y[c] /= total;
    }
}
