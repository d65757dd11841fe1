#include <cstdint>
#include <immintrin.h>

// The inner product of four planes of bytes with the digits 0 to 3 that lie in `digits`.
using Inner = int32_t (*)(const int8_t* planes, const uint8_t* digits, int64_t n);

static int32_t tail(const int8_t* planes, const uint8_t* digits, int64_t n, int64_t from) {
    int32_t sum = 0;
    for (int64_t j = from; j < n; ++j)
        for (int s = 0; s < 4; ++s) sum += int32_t(planes[s * n + j]) * (digits[j] >> 2 * s & 3);
    return sum;
}

static int32_t plain(const int8_t* planes, const uint8_t* digits, int64_t n) { return tail(planes, digits, n, 0); }

__attribute__((target("avx2"))) static int32_t avx2(const int8_t* planes, const uint8_t* digits, int64_t n) {
    const __m256i three = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256();
    int64_t j = 0;
    for (; j + 32 <= n; j += 32) {
        __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(digits + j));
        for (int s = 0; s < 4; ++s) {
            const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(planes + s * n + j));
            const __m256i pairs = _mm256_maddubs_epi16(_mm256_and_si256(bits, three), x);  // at most 768
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
            bits = _mm256_srli_epi16(bits, 2);
        }
    }
    alignas(32) int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
    int32_t total = 0;
    for (int32_t lane : lanes) total += lane;
    return total + tail(planes, digits, n, j);
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) static int32_t vnni(const int8_t* planes, const uint8_t* digits,
                                                                           int64_t n) {
    const __m512i three = _mm512_set1_epi8(3);
    __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    int64_t j = 0;
    for (; j + 64 <= n; j += 64) {
        __m512i bits = _mm512_loadu_si512(digits + j);
        for (int s = 0; s < 4; ++s) {
            sums[s] = _mm512_dpbusd_epi32(sums[s], _mm512_and_si512(bits, three), _mm512_loadu_si512(planes + s * n + j));
            bits = _mm512_srli_epi16(bits, 2);
        }
    }
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(sums[0], sums[1]), _mm512_add_epi32(sums[2], sums[3]));
    return _mm512_reduce_add_epi32(sum) + tail(planes, digits, n, j);
}

static Inner choose() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni")) return vnni;
    return __builtin_cpu_supports("avx2") ? avx2 : plain;
}

extern "C" void product(const int8_t* planes, const int32_t* sums, const uint8_t* packed, int32_t* out, int64_t rows,
                        int64_t outer, int64_t n) {
    static const Inner inner = choose();
#pragma omp parallel for
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t r = 0; r < rows; ++r) out[r * outer + o] = inner(planes + r * 4 * n, packed + o * n, n) - sums[r];
}
