#include <cstdint>

// All sections see a sample before the next one comes, so sound is read and written once.
extern "C" void filter(const float* x, const float* sections, float* out, int64_t channels, int64_t steps, int64_t count) {
#pragma omp parallel for
    for (int64_t c = 0; c < channels; ++c) {
        double s1[16] = {}, s2[16] = {};
        for (int64_t t = 0; t < steps; ++t) {
            double u = x[c * steps + t];
            for (int64_t k = 0; k < count; ++k) {
                const float* w = sections + 5 * k;
                const double y = w[0] * u + s1[k];
                s1[k] = w[1] * u - w[3] * y + s2[k];
                s2[k] = w[2] * u - w[4] * y;
                u = y;
            }
            out[c * steps + t] = float(u);
        }
    }
}
