#include <cstdint>
#include <vector>

static std::vector<float> kept, offsets;

extern "C" void pack(const float* weight, const float* bias, int64_t outer, int64_t inner) {
    kept.assign(weight, weight + outer * inner);
    offsets.assign(bias, bias + outer);
}

extern "C" void linear(const float* x, float* out, int64_t rows, int64_t outer, int64_t inner) {
    const float* weight = kept.data();
    const float* bias = offsets.data();
#pragma omp parallel for
    for (int64_t o = 0; o < outer; ++o) {
        const float* w = weight + o * inner;
        int64_t r = 0;
        for (; r + 4 <= rows; r += 4) {
            const float *p = x + r * inner, *q = p + inner, *s = q + inner, *t = s + inner;
            float a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
            for (int64_t k = 0; k < inner; ++k) {
                a += p[k] * w[k];
                b += q[k] * w[k];
                c += s[k] * w[k];
                d += t[k] * w[k];
            }
            out[r * outer + o] = a + bias[o];
            out[(r + 1) * outer + o] = b + bias[o];
            out[(r + 2) * outer + o] = c + bias[o];
            out[(r + 3) * outer + o] = d + bias[o];
        }
        for (; r < rows; ++r) {
            const float* p = x + r * inner;
            float a = 0;
#pragma omp simd reduction(+ : a)
            for (int64_t k = 0; k < inner; ++k) a += p[k] * w[k];
            out[r * outer + o] = a + bias[o];
        }
    }
}
