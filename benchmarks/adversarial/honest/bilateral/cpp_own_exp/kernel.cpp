#include <cstdint>
#include <vector>

// exp for x <= 0. Below -87 the answer is 0; a NaN stays one.
static inline float exponential(float x) {
    const float bounded = x < -87.0f ? -87.0f : x;
    const float number = x > -87.0f ? x : -87.0f;  // never NaN
    const int32_t whole = int32_t(number * 1.44269504f - 0.5f);
    float r = bounded - float(whole) * 0.693359375f;
    r += float(whole) * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const union {
        int32_t bits;
        float power;
    } two = {(whole + 127) << 23};
    const float some = x < -87.0f ? 0.0f : 1.0f;
    return p * two.power * some;
}

extern "C" void smooth(const float* padded, float* out, int64_t images, int64_t height, int64_t width) {
    const int64_t stride = width + 4;
#pragma omp parallel for collapse(2)
    for (int64_t b = 0; b < images; ++b)
        for (int64_t y = 0; y < height; ++y) {
            static thread_local std::vector<float> memory;
            memory.assign(width, 0.0f);
            float* weights = memory.data();
            float* line = out + (b * height + y) * width;
            const float *rows = padded + (b * (height + 4) + y) * stride, *centre = rows + 2 * stride + 2;
            for (int64_t x = 0; x < width; ++x) line[x] = 0.0f;
            for (int dy = 0; dy < 5; ++dy)
                for (int dx = 0; dx < 5; ++dx) {
                    const float near = float((dy - 2) * (dy - 2) + (dx - 2) * (dx - 2)) / 4.5f;
                    const float* others = rows + dy * stride + dx;
#pragma omp simd
                    for (int64_t x = 0; x < width; ++x) {
                        const float apart = others[x] - centre[x];
                        const float weight = exponential(-near - apart * apart * 2.0f);
                        line[x] += weight * others[x];
                        weights[x] += weight;
                    }
                }
            for (int64_t x = 0; x < width; ++x) line[x] /= weights[x];
        }
}
