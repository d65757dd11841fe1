#include <cstdint>

extern "C" void nothing(const float* x, float* out, int64_t n) {}
