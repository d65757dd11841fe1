#include <cstdint>

__attribute__((noinline)) static int64_t down(volatile float* out, int64_t n) {
    volatile char frame[4096];
    frame[n % 4096] = (char)n;
    return n < 0 ? 0 : down(out, n + 1) + frame[(n + 1) % 4096];
}

extern "C" void dive(const float* x, float* out, int64_t n) {
    out[0] = x[0] + (float)down(out, 1);
}
