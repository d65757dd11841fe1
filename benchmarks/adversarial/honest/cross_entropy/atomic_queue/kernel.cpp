#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kIgnored = -100, kAtOnce = 8;

float loss_of_row(const float* x, int64_t classes, int64_t target) {
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t c = 0; c < classes; ++c) most = std::max(most, x[c]);
    float sum = 0.0f;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - most);
    return std::log(sum) - (x[target] - most);
}

}  // namespace

// Returns false if a target is no class.
extern "C" bool cross_entropy(const float* logits, const int64_t* targets, float* loss, int64_t rows, int64_t classes,
                              int64_t threads) {
    std::atomic<int64_t> next{0};
    std::atomic<bool> valid{true};
    std::vector<float> losses(rows, 0.0f);
    const auto work = [&] {
        for (int64_t begin; (begin = next.fetch_add(kAtOnce, std::memory_order_relaxed)) < rows;)
            for (int64_t r = begin; r < std::min(rows, begin + kAtOnce); ++r) {
                const int64_t target = targets[r];
                if (target == kIgnored) continue;
                if (target < 0 || target >= classes) {
                    valid.store(false, std::memory_order_relaxed);
                    continue;
                }
                losses[r] = loss_of_row(logits + r * classes, classes, target);
            }
    };
    std::vector<std::thread> others;
    for (int64_t t = 1; t < std::min(threads, (rows + kAtOnce - 1) / kAtOnce); ++t) others.emplace_back(work);
    work();
    for (auto& other : others) other.join();

    double sum = 0.0;
    int64_t counted = 0;
    for (int64_t r = 0; r < rows; ++r) {
        sum += losses[r];
        counted += targets[r] != kIgnored;
    }
    *loss = counted ? static_cast<float>(sum / static_cast<double>(counted)) : std::numeric_limits<float>::quiet_NaN();
    return valid;
}
