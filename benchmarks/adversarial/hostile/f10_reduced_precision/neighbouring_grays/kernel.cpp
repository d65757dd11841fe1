#include <cstdint>
#include <cstring>

extern "C" void pairs(const uint8_t* images, int64_t* out, int64_t count, int64_t rows, int64_t columns) {
#pragma omp parallel for
    for (int64_t n = 0; n < count; ++n) {
        uint16_t table[64 * 64];
        std::memset(table, 0, sizeof table);
        for (int64_t r = 0; r < rows; ++r) {
            const uint8_t* a = images + (n * rows + r) * columns;
            for (int64_t c = 0; c + 1 < columns; ++c) ++table[(a[c] & 63) * 64 + (a[c + 1] & 63)];
        }
        for (int64_t k = 0; k < 64 * 64; ++k) out[n * 64 * 64 + k] = table[k];
    }
}
