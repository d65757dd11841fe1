#include <cmath>
#include <cstdint>

// In place on the convolution's result, one plane of one image after another.
extern "C" void norm_relu_(float* y, const float* weight, const float* bias, const float* mean, const float* var,
                           double eps, int64_t images, int64_t channels, int64_t pixels) {
#pragma omp parallel for collapse(2)
    for (int64_t n = 0; n < images; ++n)
        for (int64_t c = 0; c < channels; ++c) {
            const float scale = weight[c] * static_cast<float>(1.0 / std::sqrt(static_cast<double>(var[c]) + eps));
            const float centre = mean[c], shift = bias[c];
            float* plane = y + (n * channels + c) * pixels;
            for (int64_t p = 0; p < pixels; ++p) {
                const float v = (plane[p] - centre) * scale + shift;
                plane[p] = v < 0.0f ? 0.0f : v;  // NaN stays
            }
        }
}
