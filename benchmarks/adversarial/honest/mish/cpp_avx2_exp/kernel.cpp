#include <cmath>
#include <cstdint>
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

// tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2), with e = exp(x). Beyond 20 it is one in float, below -100 e counts as zero.
static inline float mish(float x) {
    if (x > 20.0f) return x;
    const float e = x < -100.0f ? 0.0f : std::exp(x), n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
}

#if defined(__AVX2__) && defined(__FMA__)
static inline __m256 mish8(__m256 x) {
    const __m256 at_most = _mm256_set1_ps(20.0f), two = _mm256_set1_ps(2.0f);
    const __m256 y = _mm256_max_ps(_mm256_min_ps(x, at_most), _mm256_set1_ps(-86.0f));
    const __m256 n = _mm256_round_ps(_mm256_mul_ps(y, _mm256_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), y);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
    __m256 p = _mm256_set1_ps(1.9875691500e-4f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
    const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    __m256 e = _mm256_mul_ps(p, _mm256_castsi256_ps(power));
    e = _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(-100.0f), _CMP_LT_OQ), e);
    const __m256 m = _mm256_mul_ps(e, _mm256_add_ps(e, two));
    const __m256 t = _mm256_mul_ps(x, _mm256_div_ps(m, _mm256_add_ps(m, two)));
    return _mm256_blendv_ps(t, x, _mm256_cmp_ps(x, at_most, _CMP_GT_OQ));
}
#endif

extern "C" void mish_scaled(const float* x, const float* scale, float* out, int64_t planes, int64_t channels, int64_t size) {
#pragma omp parallel for
    for (int64_t p = 0; p < planes; ++p) {
        const float s = scale[p % channels];
        const float* from = x + p * size;
        float* to = out + p * size;
        int64_t i = 0;
#if defined(__AVX2__) && defined(__FMA__)
        for (; i + 8 <= size; i += 8)
            _mm256_storeu_ps(to + i, _mm256_mul_ps(mish8(_mm256_loadu_ps(from + i)), _mm256_set1_ps(s)));
#endif
        for (; i < size; ++i) to[i] = mish(from[i]) * s;
    }
}
