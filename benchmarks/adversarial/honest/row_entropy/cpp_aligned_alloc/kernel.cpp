#include <cmath>
#include <cstdint>
#include <cstdlib>

// H = log S - (sum of e * t) / S with t = x - max and S = sum of e = exp(t).
extern "C" void entropy(const float* x, float* out, int64_t rows, int64_t cols) {
#pragma omp parallel
    {
        float* e = static_cast<float*>(std::aligned_alloc(64, cols * sizeof(float)));
#pragma omp for
        for (int64_t r = 0; r < rows; ++r) {
            const float* row = x + r * cols;
            float most = row[0];
            for (int64_t c = 1; c < cols; ++c) most = row[c] > most ? row[c] : most;
            for (int64_t c = 0; c < cols; ++c) e[c] = std::exp(row[c] - most);
            double total = 0.0, weighted = 0.0;
            for (int64_t c = 0; c < cols; ++c) {
                total += e[c];
                weighted += static_cast<double>(e[c]) * (row[c] - most);
            }
            out[r] = static_cast<float>(std::log(total) - weighted / total);
        }
        std::free(e);
    }
}
