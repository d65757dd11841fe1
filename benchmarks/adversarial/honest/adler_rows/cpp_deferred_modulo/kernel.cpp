#include <algorithm>
#include <cstdint>

extern "C" void adler(const uint8_t* x, int64_t* out, int64_t rows, int64_t length) {
    constexpr int64_t block = 4096, prime = 65521;
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        int64_t low = 1, high = 0;
        for (int64_t from = 0; from < length; from += block) {
            const int n = int(std::min(block, length - from));
            const uint8_t* bytes = x + r * length + from;
            uint32_t sum = 0, weighted = 0;  // at most 4096 * 4097 / 2 * 255 < 2^32
            for (int i = 0; i < n; ++i) {
                sum += bytes[i];
                weighted += uint32_t(n - i) * bytes[i];
            }
            high = (high + n * low + weighted) % prime;
            low = (low + sum) % prime;
        }
        out[r] = high << 16 | low;
    }
}
