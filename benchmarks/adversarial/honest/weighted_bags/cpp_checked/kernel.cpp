#include <atomic>
#include <cstdint>

extern "C" int64_t bags(const float* table, const int64_t* ids, const int64_t* offsets, const float* weights,
                        float* out, int64_t bags, int64_t width, int64_t rows) {
    std::atomic<int64_t> bad{-1};
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t bag = 0; bag < bags; ++bag) {
        float* sum = out + bag * width;
        for (int64_t d = 0; d < width; ++d) sum[d] = 0;
        for (int64_t i = offsets[bag]; i < offsets[bag + 1]; ++i) {
            if (ids[i] < 0 || ids[i] >= rows) {
                bad = i;
                break;
            }
            const float* row = table + ids[i] * width;
            const float weight = weights[i];
#pragma omp simd
            for (int64_t d = 0; d < width; ++d) sum[d] += weight * row[d];
        }
    }
    return bad;
}
