#include <cstdint>
#include <immintrin.h>

using Inner = int32_t (*)(const int8_t*, const int8_t*, int64_t);

static int32_t plain(const int8_t* a, const int8_t* b, int64_t n) {
    int32_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += int32_t(a[i]) * int32_t(b[i]);
    return sum;
}

// maddubs would saturate, so 8 bits become 16 first.
__attribute__((target("avx2"))) static int32_t avx2(const int8_t* a, const int8_t* b, int64_t n) {
    __m256i sum = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i)));
        const __m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i)));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
    }
    alignas(32) int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
    int32_t total = 0;
    for (int32_t lane : lanes) total += lane;
    return total + plain(a + i, b + i, n - i);
}

__attribute__((target("avx512f,avx512bw"))) static int32_t avx512(const int8_t* a, const int8_t* b, int64_t n) {
    __m512i sum = _mm512_setzero_si512();
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m512i x = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i)));
        const __m512i y = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i)));
        sum = _mm512_add_epi32(sum, _mm512_madd_epi16(x, y));
    }
    return _mm512_reduce_add_epi32(sum) + plain(a + i, b + i, n - i);
}

static Inner choose() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) return avx512;
    return __builtin_cpu_supports("avx2") ? avx2 : plain;
}

extern "C" void scores(const int8_t* queries, const int8_t* keys, int32_t* out, int64_t m, int64_t n, int64_t depth) {
    static const Inner inner = choose();
#pragma omp parallel for
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) out[i * n + j] = inner(queries + i * depth, keys + j * depth, depth);
}
