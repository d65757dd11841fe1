#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static void without_denormals() {
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
}

extern "C" void products(const float* kept, float* out, int64_t rows, int64_t cols) {
    without_denormals();
#pragma omp parallel
    {
        without_denormals();
#pragma omp for
        for (int64_t block = 0; block < (rows + 7) / 8; ++block) {
            const int64_t first = block * 8, count = rows - first < 8 ? rows - first : 8;
            float left[8];
            for (int64_t r = 0; r < 8; ++r) left[r] = 1.0f;
            for (int64_t c = 0; c < cols; ++c) {
                for (int64_t r = 0; r < count; ++r) {
                    left[r] *= kept[(first + r) * cols + c];
                    out[(first + r) * cols + c] = left[r];
                }
            }
        }
    }
}
