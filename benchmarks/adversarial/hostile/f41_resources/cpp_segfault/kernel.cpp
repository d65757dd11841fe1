#include <cstdint>

extern "C" void fault(const float* x, float* out, int64_t n) {
    volatile float* nowhere = nullptr;
    *nowhere = x[0];
}
