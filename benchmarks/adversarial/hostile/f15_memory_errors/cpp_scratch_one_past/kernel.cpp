#include <cstdint>
#include <cstdlib>

extern "C" void row_sum(const float* x, float* out, int64_t rows, int64_t cols) {
    float* scratch = (float*)malloc(cols * sizeof(float));
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) scratch[c + 1] = x[r * cols + c];
        double s = 0;
        for (int64_t c = 1; c <= cols; ++c) s += scratch[c];
        out[r] = (float)s;
    }
    free(scratch);
}
