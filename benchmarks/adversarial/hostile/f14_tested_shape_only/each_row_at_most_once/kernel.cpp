#include <cstdint>
#include <cstring>

extern "C" int64_t update(const float* table, const int64_t* rows, const float* updates, float* out, int64_t number,
                          int64_t count, int64_t width) {
    for (int64_t i = 0; i < count; ++i)
        if (rows[i] < 0 || rows[i] >= number) return 1;
#pragma omp parallel
    {
#pragma omp for
        for (int64_t r = 0; r < number; ++r) std::memcpy(out + r * width, table + r * width, width * sizeof(float));
#pragma omp for
        for (int64_t i = 0; i < count; ++i) {
            const float *old = table + rows[i] * width, *u = updates + i * width;
            float* y = out + rows[i] * width;
            for (int64_t c = 0; c < width; ++c) y[c] = old[c] + u[c];
        }
    }
    return 0;
}
