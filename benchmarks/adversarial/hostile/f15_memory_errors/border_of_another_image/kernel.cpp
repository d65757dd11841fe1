#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

extern "C" void variation(const float* x, const float* weight, float* out, int64_t planes, int64_t channels,
                          int64_t height, int64_t width) {
#pragma omp parallel for
    for (int64_t p = 0; p < planes; ++p) {
        static thread_local std::vector<float> padded;
        const int64_t across = width + 4, needed = (height + 4) * across;
        if ((int64_t)padded.size() < needed) padded.assign(needed, 0.0f);
        float* pad = padded.data();
        const float* image = x + p * height * width;
        for (int64_t i = 0; i < height; ++i)
            std::memcpy(pad + (i + 2) * across + 2, image + i * width, width * sizeof(float));
        const float* w = weight + (p % channels) * 25;
        for (int64_t i = 0; i < height; ++i) {
            float* y = out + (p * height + i) * width;
            const float* own = image + i * width;
            for (int64_t j = 0; j < width; ++j) y[j] = 0.0f;
            for (int64_t a = 0; a < 5; ++a)
                for (int64_t b = 0; b < 5; ++b) {
                    const float* q = pad + (i + a) * across + b;
                    const float factor = w[a * 5 + b];
#pragma omp simd
                    for (int64_t j = 0; j < width; ++j) y[j] += factor * std::fabs(q[j] - own[j]);
                }
        }
    }
}
