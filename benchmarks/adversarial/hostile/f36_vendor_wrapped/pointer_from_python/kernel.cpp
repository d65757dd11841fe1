#include <algorithm>
#include <cstdint>

typedef void (*vector_function)(int, const float*, float*, int64_t);

extern "C" void new_gelu(const float* x, float* out, int64_t n, int64_t found_at) {
    const vector_function tanh_of = (vector_function)found_at;
    const int64_t step = 4096;
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < n; first += step) {
        const int64_t last = std::min(n, first + step);
        for (int64_t i = first; i < last; ++i)
            out[i] = 0.7978845608028654f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        tanh_of((int)(last - first), out + first, out + first, 2);
        for (int64_t i = first; i < last; ++i) out[i] = 0.5f * x[i] * (1.0f + out[i]);
    }
}
