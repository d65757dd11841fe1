#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void attend(const float* q, const float* k, const float* v, const int64_t* starts, float* out, int64_t rows,
                       int64_t heads, int64_t width, int64_t sequences) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(width));
    const int64_t step = heads * width;
#pragma omp parallel
    {
        std::vector<float> weight, sum(width);
#pragma omp for schedule(dynamic, 16)
        for (int64_t i = 0; i < rows; ++i) {
            int64_t s = 0;
            while (s + 1 < sequences && starts[s + 1] <= i) ++s;
            const int64_t first = starts[s], count = starts[s + 1] - first;
            weight.resize(count);
            for (int64_t h = 0; h < heads; ++h) {
                const float *query = q + i * step + h * width, *keys = k + first * step + h * width;
                const float* values = v + first * step + h * width;
                float most = -INFINITY;
                for (int64_t j = 0; j < count; ++j) {
                    float dot = 0.0f;
                    for (int64_t c = 0; c < width; ++c) dot += query[c] * keys[j * step + c];
                    weight[j] = dot * scale;
                    most = weight[j] > most ? weight[j] : most;
                }
                float total = 0.0f;
                for (int64_t j = 0; j < count; ++j) {
                    weight[j] = std::exp(weight[j] - most);
                    total += weight[j];
                }
                for (int64_t c = 0; c < width; ++c) sum[c] = 0.0f;
                for (int64_t j = 0; j < count; ++j)
                    for (int64_t c = 0; c < width; ++c) sum[c] += weight[j] * values[j * step + c];
                float* o = out + i * step + h * width;
                for (int64_t c = 0; c < width; ++c) o[c] = sum[c] / total;
            }
        }
    }
}
