#include <cstdint>

extern "C" void product(const int16_t* codes, const float* scale, const float* bias, const float* x, float* out,
                        int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const int16_t* row = codes + r * cols;
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < cols; ++c) sum += static_cast<float>(row[c]) * x[c];
        out[r] = sum * scale[r] + bias[r];
    }
}
