#include <cstdint>

static bool dominates(const float* other, const float* own, int64_t width) {
    bool cheaper = false;
    for (int64_t d = 0; d < width; ++d) {
        if (!(other[d] <= own[d])) return false;  // NaN compares with nothing
        cheaper |= other[d] < own[d];
    }
    return cheaper;
}

extern "C" void front(const float* costs, uint8_t* out, int64_t n, int64_t width) {
#pragma omp parallel
    {
        int64_t last = 0;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; ++i) {
            const float* own = costs + i * width;
            bool found = dominates(costs + last * width, own, width);
            for (int64_t j = 0; j < n && !found; ++j) {
                found = dominates(costs + j * width, own, width);
                if (found) last = j;
            }
            out[i] = !found;
        }
    }
}
