#include <cstdint>
#if __INCLUDE_LEVEL__ < 60
#include __FILE__
#include __FILE__
#endif

extern "C" void relu(const float* x, float* out, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] > 0 ? x[i] : 0;
}
