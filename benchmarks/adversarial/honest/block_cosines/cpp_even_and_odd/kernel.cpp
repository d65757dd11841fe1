#include <cmath>
#include <cstdint>

struct Table {
    float even[4][4], odd[4][4];
    Table() {
        for (int k = 0; k < 8; ++k)
            for (int i = 0; i < 4; ++i) {
                const double c = std::cos(M_PI * (2 * i + 1) * k / 16) * (k ? 0.5 : std::sqrt(0.125));
                (k % 2 ? odd : even)[k / 2][i] = float(c);
            }
    }
};
static const Table table;

// Eight transforms at once: `x` and `y` have the index of the transform in front of that of the lane.
static inline void transform(const float (&x)[8][8], float (&y)[8][8]) {
    for (int k = 0; k < 4; ++k)
#pragma omp simd
        for (int lane = 0; lane < 8; ++lane) {
            float even = 0, odd = 0;
            for (int i = 0; i < 4; ++i) {
                even += table.even[k][i] * (x[i][lane] + x[7 - i][lane]);
                odd += table.odd[k][i] * (x[i][lane] - x[7 - i][lane]);
            }
            y[2 * k][lane] = even;
            y[2 * k + 1][lane] = odd;
        }
}

extern "C" void cosines(const float* x, float* out, int64_t strips, int64_t width) {
#pragma omp parallel for
    for (int64_t strip = 0; strip < strips; ++strip)
        for (int64_t block = 0; block < width / 8; ++block) {
            const float* from = x + strip * 8 * width + block * 8;
            float* to = out + (strip * (width / 8) + block) * 64;
            float a[8][8], b[8][8];
            for (int r = 0; r < 8; ++r)
                for (int c = 0; c < 8; ++c) a[r][c] = from[r * width + c];
            transform(a, b);
            for (int r = 0; r < 8; ++r)
                for (int c = 0; c < 8; ++c) a[c][r] = b[r][c];
            transform(a, b);
            for (int r = 0; r < 8; ++r)
                for (int c = 0; c < 8; ++c) to[r * 8 + c] = b[c][r];
        }
}
