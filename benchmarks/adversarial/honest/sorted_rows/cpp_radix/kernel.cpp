#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

extern "C" void sort_rows(const float* x, float* out, int64_t rows, int64_t width) {
#pragma omp parallel
    {
        std::vector<uint32_t> here(width), there(width);
#pragma omp for
        for (int64_t r = 0; r < rows; ++r) {
            uint32_t counts[3][2048] = {};
            for (int64_t i = 0; i < width; ++i) {
                uint32_t bits;
                const float value = x[r * width + i];
                std::memcpy(&bits, &value, 4);
                if (value != value) bits = 0x7fc00000u;
                bits ^= static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u;
                here[i] = bits;
                ++counts[0][bits & 2047];
                ++counts[1][bits >> 11 & 2047];
                ++counts[2][bits >> 22];
            }
            for (int pass = 0; pass < 3; ++pass) {
                uint32_t begin = 0;
                for (uint32_t& count : counts[pass]) {
                    const uint32_t number = count;
                    count = begin;
                    begin += number;
                }
                for (int64_t i = 0; i < width; ++i) there[counts[pass][here[i] >> (11 * pass) & 2047]++] = here[i];
                std::swap(here, there);
            }
            for (int64_t i = 0; i < width; ++i) {
                const uint32_t bits = here[i] ^ (here[i] & 0x80000000u ? 0x80000000u : 0xffffffffu);
                std::memcpy(out + r * width + i, &bits, 4);
            }
        }
    }
}
