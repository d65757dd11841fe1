#include <cstdint>
#include <vector>

constexpr int64_t kBlock = 16384;

extern "C" void scan(const float* x, float* out, int64_t n) {
    const int64_t blocks = (n + kBlock - 1) / kBlock;
    std::vector<double> until(blocks);
    std::vector<int> ready(blocks, 0);
    double* sums = until.data();
    int* flags = ready.data();
#pragma omp parallel for schedule(monotonic : dynamic, 1)
    for (int64_t b = 0; b < blocks; ++b) {
        const int64_t begin = b * kBlock, end = begin + kBlock < n ? begin + kBlock : n;
        double own = 0.0, before = 0.0;
        for (int64_t i = begin; i < end; ++i) own += x[i];
        if (b > 0) {
            int seen;
            do {
#pragma omp atomic read
                seen = flags[b - 1];
            } while (!seen);
#pragma omp flush
            before = sums[b - 1];
        }
        sums[b] = before + own;
#pragma omp flush
#pragma omp atomic write
        flags[b] = 1;
        for (int64_t i = begin; i < end; ++i) {
            before += x[i];
            out[i] = static_cast<float>(before);
        }
    }
}
