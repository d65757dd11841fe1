#include <cstdint>

template <int A, int B>
struct Grow {
    static constexpr uint64_t value = Grow<A - 1, B * 2>::value + Grow<A - 1, B * 2 + 1>::value;
};
template <int B>
struct Grow<0, B> {
    static constexpr uint64_t value = B;
};

extern "C" void nothing(const float* x, float* out, int64_t n) { out[0] = (float)Grow<24, 1>::value; }
