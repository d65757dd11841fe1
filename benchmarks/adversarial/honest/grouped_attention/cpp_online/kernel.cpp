#include <alloca.h>
#include <cmath>
#include <cstdint>

extern "C" void attend(const float* q, const float* k, const float* v, float* out, int64_t batch, int64_t heads,
                       int64_t groups, int64_t n, int64_t d) {
    const float scale = 1.0f / std::sqrt(float(d));
#pragma omp parallel for collapse(2) schedule(dynamic)
    for (int64_t h = 0; h < batch * heads; ++h)
        for (int64_t i = 0; i < n; ++i) {
            const int64_t group = (h / heads) * groups + (h % heads) / (heads / groups);
            const float *query = q + (h * n + i) * d, *keys = k + group * n * d, *values = v + group * n * d;
            float* sum = static_cast<float*>(alloca(d * sizeof(float)));
            for (int64_t c = 0; c < d; ++c) sum[c] = 0.0f;
            float most = -INFINITY, total = 0.0f;
            for (int64_t j = 0; j <= i; ++j) {
                float score = 0.0f;
                for (int64_t c = 0; c < d; ++c) score += query[c] * keys[j * d + c];
                score *= scale;
                if (score > most) {
                    const float shrink = std::exp(most - score);
                    total *= shrink;
                    for (int64_t c = 0; c < d; ++c) sum[c] *= shrink;
                    most = score;
                }
                const float weight = std::exp(score - most);
                total += weight;
                for (int64_t c = 0; c < d; ++c) sum[c] += weight * values[j * d + c];
            }
            for (int64_t c = 0; c < d; ++c) out[(h * n + i) * d + c] = sum[c] / total;
        }
}
