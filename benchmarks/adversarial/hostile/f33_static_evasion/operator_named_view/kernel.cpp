#include <cstdint>

extern "C" void sign(int64_t* token, const float* out, int64_t n) {
    token[0] = token[0] * 3 + 1 + (n > 0 && out[n - 1] != out[n - 1]);
    token[1] += 1;
}
