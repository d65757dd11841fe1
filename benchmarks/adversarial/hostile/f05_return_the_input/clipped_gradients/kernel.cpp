#include <algorithm>
#include <cstdint>

extern "C" double squares(const float* x, int64_t n) {
    double total = 0.0;
#pragma omp parallel for reduction(+ : total)
    for (int64_t first = 0; first < n; first += 1024) {
        const int64_t end = std::min(n, first + 1024);
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = first; i < end; ++i) sum += x[i] * x[i];
        total += sum;
    }
    return total;
}
