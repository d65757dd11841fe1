#include <algorithm>
#include <cstdint>
#include <vector>

extern "C" void distances(const int64_t* a, const int64_t* b, int64_t* out, int64_t pairs, int64_t m, int64_t n) {
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < pairs; ++p) {
        thread_local std::vector<int32_t> row;
        row.resize(n + 1);
        for (int64_t j = 0; j <= n; ++j) row[j] = int32_t(j);
        const int64_t *left = a + p * m, *right = b + p * n;
        for (int64_t i = 0; i < m; ++i) {
            int32_t corner = row[0];
            row[0] = int32_t(i + 1);
            for (int64_t j = 0; j < n; ++j) {
                const int32_t above = row[j + 1];
                row[j + 1] = std::min({above + 1, row[j] + 1, corner + int32_t(left[i] != right[j])});
                corner = above;
            }
        }
        out[p] = row[n];
    }
}
