#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

static void one(const float* x, float* peak, float* length, int64_t n) {
    constexpr int lanes = 32, block = 4096;
    float top[lanes];
    std::fill(top, top + lanes, -std::numeric_limits<float>::infinity());
    double total = 0;
    for (int64_t from = 0; from < n; from += block) {
        const int64_t to = std::min<int64_t>(n, from + block), whole = from + (to - from) / lanes * lanes;
        float sums[lanes] = {};
        for (int64_t i = from; i < whole; i += lanes)
#pragma omp simd
            for (int l = 0; l < lanes; ++l) {
                const float value = x[i + l];
                sums[l] += value * value;
                top[l] = top[l] >= value ? top[l] : value;
            }
        for (int64_t i = whole; i < to; ++i) {
            const float value = x[i];
            sums[i - whole] += value * value;
            top[i - whole] = top[i - whole] >= value ? top[i - whole] : value;
        }
        for (int width = lanes / 2; width; width /= 2)
            for (int l = 0; l < width; ++l) sums[l] += sums[l + width];
        total += sums[0];
    }
    const float highest = *std::max_element(top, top + lanes);
    // The maximum may lose a NaN, which the sum of squares keeps.
    *peak = std::isnan(total) ? std::numeric_limits<float>::quiet_NaN() : highest;
    *length = float(std::sqrt(float(total)));
}

extern "C" void peak_and_length(const float* x, float* peak, float* length, int64_t rows, int64_t n,
                                int64_t threads) {
    auto part = [=](int64_t from, int64_t to) {
        for (int64_t r = from; r < to; ++r) one(x + r * n, peak + r, length + r, n);
    };
    threads = std::max<int64_t>(1, std::min(threads, rows));
    std::vector<std::thread> others;
    for (int64_t t = 1; t < threads; ++t) others.emplace_back(part, rows * t / threads, rows * (t + 1) / threads);
    part(0, rows / threads);
    for (auto& other : others) other.join();
}
