#include <cstdint>

// x has a row for each input and a column for each sample, out a row for each output.
extern "C" void sparse_rows(const float* x, const int64_t* starts, const int32_t* columns, const float* values,
                            float* out, int64_t samples, int64_t outer) {
#pragma omp parallel for
    for (int64_t o = 0; o < outer; ++o) {
        float* y = out + o * samples;
        for (int64_t s = 0; s < samples; ++s) y[s] = 0.0f;
        for (int64_t k = starts[o]; k < starts[o + 1]; ++k) {
            const float value = values[k];
            const float* p = x + (int64_t)columns[k] * samples;
#pragma omp simd
            for (int64_t s = 0; s < samples; ++s) y[s] += value * p[s];
        }
    }
}
