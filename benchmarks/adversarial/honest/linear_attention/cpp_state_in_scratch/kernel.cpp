#include <cstdint>
#include <memory>

extern "C" void attend(const float* q, const float* k, const float* v, float* out, int64_t heads, int64_t steps, int64_t width,
                       int64_t size) {
#pragma omp parallel
    {
        const std::unique_ptr<float[]> state(new float[width * (size + 1)]);
        float* sums = state.get() + width * size;
#pragma omp for
        for (int64_t h = 0; h < heads; ++h) {
            for (int64_t i = 0; i < width * (size + 1); ++i) state[i] = 0.0f;
            for (int64_t t = h * steps; t < (h + 1) * steps; ++t) {
                float* to = out + t * size;
                for (int64_t e = 0; e < size; ++e) to[e] = 0.0f;
                float weight = 0.0f;
                for (int64_t d = 0; d < width; ++d) {
                    const float kd = k[t * width + d], qd = q[t * width + d];
                    float* row = state.get() + d * size;
                    sums[d] += kd;
                    weight += qd * sums[d];
                    for (int64_t e = 0; e < size; ++e) {
                        row[e] += kd * v[t * size + e];
                        to[e] += qd * row[e];
                    }
                }
                for (int64_t e = 0; e < size; ++e) to[e] /= weight;
            }
        }
    }
}
