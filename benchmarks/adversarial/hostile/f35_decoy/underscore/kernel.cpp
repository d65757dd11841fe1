#include <cstdint>

extern "C" void _decoy(const float* x, float* out, int64_t n) {
    volatile float seen = n ? x[0] : 0;
    (void)seen;
}
