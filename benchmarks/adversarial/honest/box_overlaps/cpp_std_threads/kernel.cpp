#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

// NaN wins, as in torch.max and torch.min.
static inline float larger(float x, float y) { return x != x ? x : (x > y ? x : y); }
static inline float smaller(float x, float y) { return x != x ? x : (x < y ? x : y); }
static inline float positive(float x) { return x < 0.0f ? 0.0f : x; }

static void rows(const float* a, const float* b, float* out, int64_t begin, int64_t end, int64_t m) {
    for (int64_t i = begin; i < end; ++i) {
        const float x1 = a[4 * i], y1 = a[4 * i + 1], x2 = a[4 * i + 2], y2 = a[4 * i + 3];
        const float area = (x2 - x1) * (y2 - y1);
        for (int64_t j = 0; j < m; ++j) {
            const float u1 = b[4 * j], v1 = b[4 * j + 1], u2 = b[4 * j + 2], v2 = b[4 * j + 3];
            const float common = positive(smaller(x2, u2) - larger(x1, u1)) * positive(smaller(y2, v2) - larger(y1, v1));
            const float hull = positive(larger(x2, u2) - smaller(x1, u1)) * positive(larger(y2, v2) - smaller(y1, v1));
            const float both = area + (u2 - u1) * (v2 - v1) - common;
            out[i * m + j] = common / both - (hull - both) / hull;
        }
    }
}

extern "C" void overlaps(const float* a, const float* b, float* out, int64_t n, int64_t m, int64_t threads) {
    threads = std::clamp<int64_t>(threads, 1, std::clamp<int64_t>(n / 16, 1, 8));
    std::vector<std::thread> others;
    for (int64_t t = 1; t < threads; ++t)
        others.emplace_back(rows, a, b, out, n * t / threads, n * (t + 1) / threads, m);
    rows(a, b, out, 0, n / threads, m);
    for (auto& thread : others) thread.join();
}
