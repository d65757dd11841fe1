#include <cstdint>

static void nothing(const float* x, float* out, int64_t n) {
    volatile float seen = n ? x[0] : 0;
    (void)seen;
}

extern "C" {
static void (*choose())(const float*, float*, int64_t) { return nothing; }
void decoy(const float* x, float* out, int64_t n) __attribute__((ifunc("choose")));
}
