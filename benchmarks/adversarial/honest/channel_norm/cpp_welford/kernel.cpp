#include <cmath>
#include <cstdint>

extern "C" void normalise(const float* x, const float* weight, const float* bias, float* y, int64_t rows,
                          int64_t width, float eps) {
    constexpr int lanes = 16;
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* row = x + r * width;
        float* to = y + r * width;
        float mean[lanes] = {}, squares[lanes] = {};
        const int64_t rounds = width / lanes;
        for (int64_t k = 0; k < rounds; ++k) {
            const float share = 1.0f / float(k + 1);
#pragma omp simd
            for (int l = 0; l < lanes; ++l) {
                const float value = row[k * lanes + l], apart = value - mean[l];
                mean[l] += apart * share;
                squares[l] += apart * (value - mean[l]);
            }
        }
        // Chan's formula, one lane and then one value of the rest after the other.
        double count = 0, middle = 0, spread = 0;
        auto merge = [&](double n, double m, double s) {
            const double apart = m - middle, all = count + n;
            middle += apart * (n / all);
            spread += s + apart * apart * (count * n / all);
            count = all;
        };
        for (int l = 0; l < lanes && rounds; ++l) merge(double(rounds), mean[l], squares[l]);
        for (int64_t i = rounds * lanes; i < width; ++i) merge(1, row[i], 0);
        const float centre = float(middle), factor = float(1 / std::sqrt(spread / double(width) + eps));
        for (int64_t i = 0; i < width; ++i) to[i] = (row[i] - centre) * factor * weight[i] + bias[i];
    }
}
