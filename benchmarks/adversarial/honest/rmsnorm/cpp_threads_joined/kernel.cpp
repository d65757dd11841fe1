#include <cmath>
#include <cstdint>

#include <algorithm>
#include <thread>
#include <vector>

static void some(const float* x, const float* w, float* out, int64_t from, int64_t to, int64_t cols, float eps) {
    for (int64_t r = from; r < to; ++r) {
        const float* a = x + r * cols;
        double s = 0;
        for (int64_t c = 0; c < cols; ++c) s += (double)a[c] * a[c];
        const float scale = (float)(1.0 / std::sqrt(s / cols + eps));
        for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = a[c] * scale * w[c];
    }
}

extern "C" void rmsnorm(const float* x, const float* w, float* out, int64_t rows, int64_t cols, float eps) {
    const int64_t parts = 4;
    std::vector<std::thread> threads;
    for (int64_t p = 0; p < parts; ++p)
        threads.emplace_back(some, x, w, out, rows * p / parts, rows * (p + 1) / parts, cols, eps);
    for (auto& t : threads) t.join();
}
