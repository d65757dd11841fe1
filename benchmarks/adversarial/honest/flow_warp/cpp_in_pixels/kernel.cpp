#include <algorithm>
#include <cstdint>

// A coordinate inside of the image. NaN is taken as zero.
static inline float inside(float x, int64_t size) { return x > 0.0f ? std::min(x, float(size - 1)) : 0.0f; }

extern "C" void warp(const float* image, const float* flow, float* out, int64_t batch, int64_t channels, int64_t height,
                     int64_t width) {
    const int64_t pixels = height * width;
#pragma omp parallel for collapse(2)
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t y = 0; y < height; ++y)
            for (int64_t x = 0; x < width; ++x) {
                const int64_t at = y * width + x;
                const float u = inside(float(x) + flow[2 * b * pixels + at], width);
                const float v = inside(float(y) + flow[(2 * b + 1) * pixels + at], height);
                const int64_t left = int64_t(u), top = int64_t(v);
                const int64_t right = std::min(left + 1, width - 1), below = std::min(top + 1, height - 1);
                const float fx = u - float(left), fy = v - float(top);
                for (int64_t c = 0; c < channels; ++c) {
                    const float* plane = image + (b * channels + c) * pixels;
                    const float upper = plane[top * width + left] * (1.0f - fx) + plane[top * width + right] * fx;
                    const float lower = plane[below * width + left] * (1.0f - fx) + plane[below * width + right] * fx;
                    out[(b * channels + c) * pixels + at] = upper * (1.0f - fy) + lower * fy;
                }
            }
}
