#include <cstdint>

extern "C" int32_t products(const float* a, const float* b, const int64_t* rows, const int64_t* columns, float* out,
                            int64_t entries, int64_t width, int64_t limit) {
    int32_t bad = 0;
#pragma omp parallel for schedule(static) reduction(| : bad)
    for (int64_t e = 0; e < entries; ++e) {
        if (e + 8 < entries) {
            const int64_t later = columns[e + 8];
            if (later >= 0 && later < limit) __builtin_prefetch(b + later * width);
        }
        const int64_t column = columns[e] < 0 ? columns[e] + limit : columns[e];  // from the end, as torch counts
        if (column < 0 || column >= limit) {
            bad = 1;
            continue;
        }
        const float *x = a + rows[e] * width, *y = b + column * width;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t d = 0; d < width; ++d) sum += x[d] * y[d];
        out[e] = sum;
    }
    return bad;
}
