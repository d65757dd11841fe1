#include <algorithm>
#include <cstdint>
#include <immintrin.h>

// Up to four tokens `x`, one after the other, times one row of the head.
using Inner = void (*)(const float* x, const float* w, float* y, int64_t tokens, int64_t n);

static void plain(const float* x, const float* w, float* y, int64_t tokens, int64_t n) {
    for (int64_t t = 0; t < tokens; ++t) {
        float sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += x[t * n + i] * w[i];
        y[t] = sum;
    }
}

__attribute__((target("avx2,fma"))) static void avx2(const float* x, const float* w, float* y, int64_t tokens,
                                                     int64_t n) {
    __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 row = _mm256_loadu_ps(w + i);
        for (int t = 0; t < tokens; ++t) sums[t] = _mm256_fmadd_ps(_mm256_loadu_ps(x + t * n + i), row, sums[t]);
    }
    for (int t = 0; t < tokens; ++t) {
        alignas(32) float lanes[8];
        _mm256_store_ps(lanes, sums[t]);
        float sum = ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
        for (int64_t j = i; j < n; ++j) sum += x[t * n + j] * w[j];
        y[t] = sum;
    }
}

__attribute__((target("avx512f"))) static void avx512(const float* x, const float* w, float* y, int64_t tokens,
                                                      int64_t n) {
    __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 some = n - i >= 16 ? 0xffff : __mmask16((1u << (n - i)) - 1);
        const __m512 row = _mm512_maskz_loadu_ps(some, w + i);
        for (int t = 0; t < tokens; ++t)
            sums[t] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(some, x + t * n + i), row, sums[t]);
    }
    for (int t = 0; t < tokens; ++t) y[t] = _mm512_reduce_add_ps(sums[t]);
}

static Inner choose() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return avx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2 : plain;
}

extern "C" void logits(const float* x, const float* w, float* out, int64_t tokens, int64_t outer, int64_t n) {
    static const Inner inner = choose();
#pragma omp parallel for schedule(static)
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t t = 0; t < tokens; t += 4) {
            const int64_t some = std::min<int64_t>(4, tokens - t);
            float y[4];
            inner(x + t * n, w + o * n, y, some, n);
            for (int64_t i = 0; i < some; ++i) out[(t + i) * outer + o] = y[i];
        }
}
