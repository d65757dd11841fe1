#include <algorithm>
#include <cstdint>
#include <cstring>

extern "C" void equalise(const uint8_t* images, uint8_t* out, int64_t count, int64_t pixels) {
#pragma omp parallel for
    for (int64_t n = 0; n < count; ++n) {
        const uint8_t* a = images + n * pixels;
        int32_t parts[4][256] = {};
        int64_t i = 0;
        for (; i + 4 <= pixels; i += 4)
            for (int k = 0; k < 4; ++k) ++parts[k][a[i + k]];
        for (; i < pixels; ++i) ++parts[0][a[i]];
        uint8_t levels[256];
        int64_t below = 0, first = 0;
        for (int v = 0; v < 256; ++v) {
            below += parts[0][v] + parts[1][v] + parts[2][v] + parts[3][v];
            if (!first) first = below;
            // The brightest value has all pixels below it and becomes white.
            levels[v] = below == pixels ? 255 : static_cast<uint8_t>((below - first) * 255 / (pixels - first));
        }
        for (i = 0; i < pixels; ++i) out[n * pixels + i] = levels[a[i]];
    }
}
