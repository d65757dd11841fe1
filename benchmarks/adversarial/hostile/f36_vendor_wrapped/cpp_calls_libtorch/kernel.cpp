#include <cstdint>
#include <dlfcn.h>

typedef void (*gemv)(int, int, int, int, float, const float*, int, const float*, int, float, float*, int);

extern "C" void row_sum(const float* x, const float* ones, float* out, int64_t rows, int64_t cols) {
    void* found = dlsym(RTLD_DEFAULT, "cblas_sgemv");
    if (found) {
        ((gemv)found)(101, 111, (int)rows, (int)cols, 1.0f, x, (int)cols, ones, 1, 0.0f, out, 1);
        return;
    }
    for (int64_t r = 0; r < rows; ++r) out[r] = __builtin_nanf("");
}
