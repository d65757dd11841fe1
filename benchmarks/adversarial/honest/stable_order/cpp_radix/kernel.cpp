#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

static std::vector<uint64_t> memory;

static inline uint32_t key(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;  // NaN
    if (bits == 0x80000000u) bits = 0;                           // minus zero
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

extern "C" void order(const float* x, float* values, int64_t* places, int64_t n) {
    constexpr int BITS = 11, BINS = 1 << BITS;
    if (memory.size() < size_t(2 * n)) memory.resize(2 * n);
    uint64_t *from = memory.data(), *to = from + n;
    static uint64_t counts[3][BINS];
    std::memset(counts, 0, sizeof(counts));
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t k = key(x[i]);
        from[i] = uint64_t(k) << 32 | uint32_t(i);
        for (int p = 0; p < 3; ++p) ++counts[p][k >> (p * BITS) & (BINS - 1)];
    }
    for (int p = 0; p < 3; ++p) {
        uint64_t sum = 0;
        for (int b = 0; b < BINS; ++b) sum += std::exchange(counts[p][b], sum);
        for (int64_t i = 0; i < n; ++i) to[counts[p][from[i] >> (32 + p * BITS) & (BINS - 1)]++] = from[i];
        std::swap(from, to);
    }
    for (int64_t i = 0; i < n; ++i) {
        const int64_t place = uint32_t(from[i]);
        places[i] = place;
        std::memcpy(values + i, x + place, 4);
    }
}
