#include <cstdint>

extern "C" void fold(const uint8_t* x, uint8_t* out, int64_t planes, int64_t height, int64_t width) {
    const int64_t plane = height / 4 * (width / 4);
#pragma omp parallel for collapse(2)
    for (int64_t p = 0; p < planes; ++p)
        for (int64_t h = 0; h < height; ++h) {
            const uint8_t* row = x + (p * height + h) * width;
            uint8_t* to = out + p * 16 * plane + h % 4 * 4 * plane + h / 4 * (width / 4);
            uint8_t *a = to, *b = to + plane, *c = to + 2 * plane, *d = to + 3 * plane;
            for (int64_t i = 0; i < width / 4; ++i) {
                a[i] = row[4 * i];
                b[i] = row[4 * i + 1];
                c[i] = row[4 * i + 2];
                d[i] = row[4 * i + 3];
            }
        }
}
