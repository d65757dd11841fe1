#include <bit>
#include <cstdint>

extern "C" void hamming(const int64_t* a, const int64_t* b, int64_t* out, int64_t n, int64_t m, int64_t words) {
#pragma omp parallel for collapse(2)
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j) {
            int64_t total = 0;
            for (int64_t w = 0; w < words; ++w)
                total += std::popcount(static_cast<uint64_t>(a[i * words + w]) ^ static_cast<uint64_t>(b[j * words + w]));
            out[i * m + j] = total;
        }
}
