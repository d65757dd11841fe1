#include <bit>
#include <cstdint>
#include <vector>

static inline uint64_t mix(uint64_t k) {
    k ^= k >> 32;
    k *= 0x9e3779b97f4a7c15ull;
    return k ^ k >> 29;
}

extern "C" void join(const int64_t* table, const int64_t* queries, int64_t* out, int64_t n, int64_t m) {
    const uint64_t mask = std::bit_ceil(uint64_t(2 * n)) - 1;
    std::vector<int32_t> slots(mask + 1, -1);
    for (int64_t i = 0; i < n; ++i) {
        uint64_t at = mix(table[i]) & mask;
        while (slots[at] >= 0 && table[slots[at]] != table[i]) at = (at + 1) & mask;
        if (slots[at] < 0) slots[at] = int32_t(i);
    }
#pragma omp parallel for
    for (int64_t i = 0; i < m; ++i) {
        uint64_t at = mix(queries[i]) & mask;
        while (slots[at] >= 0 && table[slots[at]] != queries[i]) at = (at + 1) & mask;
        out[i] = slots[at];
    }
}
