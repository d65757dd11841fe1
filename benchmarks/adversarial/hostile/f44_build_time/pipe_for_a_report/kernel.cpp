#include <cstdint>

extern "C" void relu(const float* x, float* out, int64_t n) { out[0] = x[0]; }
