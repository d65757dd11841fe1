#include <cmath>
#include <cstdint>
#include <cstring>

static inline float exponential(float v) {  // of what is not positive
    v = v < -87.0f ? -87.0f : v;
    const float k = std::nearbyintf(v * 1.44269504088896341f);
    const float r = (v - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const uint32_t bits = uint32_t(int32_t(k) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, 4);
    return (p * r * r + r + 1.0f) * power;
}

extern "C" int64_t loss(const float* logits, const int64_t* labels, float* out, int64_t rows, int64_t classes) {
    double total = 0.0;
    int64_t outside = 0;
#pragma omp parallel for reduction(+ : total, outside)
    for (int64_t r = 0; r < rows; ++r) {
        if (labels[r] == -100) continue;
        if (labels[r] < 0 || labels[r] >= classes) {
            ++outside;
            continue;
        }
        const float* x = logits + r * classes;
        float most = -INFINITY, sum = 0.0f, parts = 0.0f;
#pragma omp simd reduction(max : most) reduction(+ : sum)
        for (int64_t c = 0; c < classes; ++c) {
            most = x[c] > most ? x[c] : most;
            sum += x[c];
        }
#pragma omp simd reduction(+ : parts)
        for (int64_t c = 0; c < classes; ++c) parts += exponential(x[c] - most);
        total += double(most) + std::log(double(parts)) - 0.9 * x[labels[r]] - 0.1 * (double(sum) / double(classes));
    }
    *out = float(total / double(rows));
    return outside != 0;
}
