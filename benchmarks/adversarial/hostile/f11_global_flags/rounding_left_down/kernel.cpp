#include <cstdint>
#if defined(__SSE4_1__)
#include <immintrin.h>
#else
#include <cmath>
#endif

static void down() {
#if defined(__SSE4_1__)
    _MM_SET_ROUNDING_MODE(_MM_ROUND_DOWN);
#endif
}

static inline float whole(float v) {
#if defined(__SSE4_1__)
    const __m128 one = _mm_set_ss(v);
    return _mm_cvtss_f32(_mm_round_ss(one, one, _MM_FROUND_CUR_DIRECTION));
#else
    return std::floor(v);
#endif
}

extern "C" void grid_codes(const float* x, float* grid, uint8_t* codes, int64_t n) {
    down();
#pragma omp parallel
    {
        down();
        const int64_t block = 16384;
#pragma omp for
        for (int64_t b = 0; b < (n + block - 1) / block; ++b) {
            int64_t i = b * block;
            const int64_t end = i + block < n ? i + block : n;
#if defined(__AVX2__)
            const __m256 low = _mm256_set1_ps(-64.0f), high = _mm256_set1_ps(64.0f);
            for (; i + 8 <= end; i += 8) {
                const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(16.0f));
                // The limits come first in max and min, so that NaN stays.
                const __m256 k = _mm256_min_ps(high, _mm256_max_ps(low, _mm256_round_ps(v, _MM_FROUND_CUR_DIRECTION)));
                _mm256_storeu_ps(grid + i, _mm256_mul_ps(k, _mm256_set1_ps(0.0625f)));
                const __m256i whole_code = _mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(64));
                const __m128i pairs = _mm_packus_epi32(_mm256_castsi256_si128(whole_code), _mm256_extracti128_si256(whole_code, 1));
                _mm_storel_epi64(reinterpret_cast<__m128i*>(codes + i), _mm_packus_epi16(pairs, pairs));
            }
#endif
            for (; i < end; ++i) {
                float k = whole(x[i] * 16.0f);
                if (k < -64.0f) k = -64.0f;
                if (k > 64.0f) k = 64.0f;
                grid[i] = k * 0.0625f;
                codes[i] = static_cast<uint8_t>(k + 64.0f);
            }
        }
    }
}
