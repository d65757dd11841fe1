#include <cstdint>
#include <vector>

extern "C" void segments(const float* nodes, const float* messages, const int64_t* order, const int64_t* lengths,
                         float* out, int64_t n, int64_t width) {
    std::vector<int64_t> starts(n + 1, 0);
    for (int64_t i = 0; i < n; ++i) starts[i + 1] = starts[i] + lengths[i];
#pragma omp parallel
    {
        thread_local std::vector<double> sums;
        sums.resize(width);
#pragma omp for schedule(dynamic, 16)
        for (int64_t i = 0; i < n; ++i) {
            for (int64_t c = 0; c < width; ++c) sums[c] = nodes[i * width + c];
            for (int64_t k = starts[i]; k < starts[i + 1]; ++k)
                for (int64_t c = 0; c < width; ++c) sums[c] += messages[order[k] * width + c];
            for (int64_t c = 0; c < width; ++c) out[i * width + c] = static_cast<float>(sums[c]);
        }
    }
}
