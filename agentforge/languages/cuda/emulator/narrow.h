// Sixteen-bit floats: bits in memory, arithmetic in float, rounded to nearest even after each operation.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "intrinsics.h"
#include "threads.h"

namespace cuda_on_cpu {

struct Half {
    static float widen(uint16_t bits) { return static_cast<float>(__builtin_bit_cast(_Float16, bits)); }
    static uint16_t round(float x) { return __builtin_bit_cast(uint16_t, static_cast<_Float16>(x)); }
    static uint16_t round(double x) { return __builtin_bit_cast(uint16_t, static_cast<_Float16>(x)); }
};

struct BFloat16 {
    static float widen(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
    static uint16_t round(float x) {
        const auto bits = __builtin_bit_cast(uint32_t, x);
        if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
        return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    static uint16_t round(double x) { return round(static_cast<float>(x)); }
};

template <class Format>
struct Narrow {
    uint16_t bits;

    Narrow() = default;  // trivial, as shared memory requires
    template <class T>
        requires std::is_arithmetic_v<T>
    Narrow(T x) {
        if constexpr (std::is_same_v<T, double>) bits = Format::round(x);
        else bits = Format::round(static_cast<float>(x));
    }
    operator float() const { return Format::widen(bits); }

    Narrow& operator+=(Narrow b) { return *this = *this + b; }
    Narrow& operator-=(Narrow b) { return *this = *this - b; }
    Narrow& operator*=(Narrow b) { return *this = *this * b; }
    Narrow& operator/=(Narrow b) { return *this = *this / b; }
    Narrow operator-() const { return of(static_cast<uint16_t>(bits ^ 0x8000)); }
    Narrow operator+() const { return *this; }
    friend Narrow operator+(Narrow a, Narrow b) { return float(a) + float(b); }
    friend Narrow operator-(Narrow a, Narrow b) { return float(a) - float(b); }
    friend Narrow operator*(Narrow a, Narrow b) { return float(a) * float(b); }
    friend Narrow operator/(Narrow a, Narrow b) { return float(a) / float(b); }
    friend bool operator==(Narrow a, Narrow b) { return float(a) == float(b); }
    friend bool operator!=(Narrow a, Narrow b) { return float(a) != float(b); }
    friend bool operator<(Narrow a, Narrow b) { return float(a) < float(b); }
    friend bool operator>(Narrow a, Narrow b) { return float(a) > float(b); }
    friend bool operator<=(Narrow a, Narrow b) { return float(a) <= float(b); }
    friend bool operator>=(Narrow a, Narrow b) { return float(a) >= float(b); }

    static Narrow of(uint16_t bits) {
        Narrow result;
        result.bits = bits;
        return result;
    }
};

template <class Format>
struct alignas(4) Pair {
    Narrow<Format> x, y;

    Pair() = default;
    Pair(Narrow<Format> x, Narrow<Format> y) : x(x), y(y) {}
    Pair& operator+=(Pair b) { return *this = *this + b; }
    Pair& operator*=(Pair b) { return *this = *this * b; }
    friend Pair operator+(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }
    friend Pair operator-(Pair a, Pair b) { return {a.x - b.x, a.y - b.y}; }
    friend Pair operator*(Pair a, Pair b) { return {a.x * b.x, a.y * b.y}; }
    friend Pair operator/(Pair a, Pair b) { return {a.x / b.x, a.y / b.y}; }
};

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_NARROW template <class F>
#define CUDA_ON_CPU_N cuda_on_cpu::Narrow<F>
#define CUDA_ON_CPU_P cuda_on_cpu::Pair<F>

#define CUDA_ON_CPU_BINARY(name, operation)                                                                    \
    CUDA_ON_CPU_NARROW CUDA_ON_CPU_N name(CUDA_ON_CPU_N a, CUDA_ON_CPU_N b) { return a operation b; }          \
    CUDA_ON_CPU_NARROW CUDA_ON_CPU_P name##2(CUDA_ON_CPU_P a, CUDA_ON_CPU_P b) { return a operation b; }       \
    CUDA_ON_CPU_NARROW CUDA_ON_CPU_N name##_rn(CUDA_ON_CPU_N a, CUDA_ON_CPU_N b) { return a operation b; }
CUDA_ON_CPU_BINARY(__hadd, +)
CUDA_ON_CPU_BINARY(__hsub, -)
CUDA_ON_CPU_BINARY(__hmul, *)
CUDA_ON_CPU_NARROW CUDA_ON_CPU_N __hdiv(CUDA_ON_CPU_N a, CUDA_ON_CPU_N b) { return a / b; }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_P __h2div(CUDA_ON_CPU_P a, CUDA_ON_CPU_P b) { return a / b; }
#undef CUDA_ON_CPU_BINARY
CUDA_ON_CPU_NARROW CUDA_ON_CPU_N __hfma(CUDA_ON_CPU_N a, CUDA_ON_CPU_N b, CUDA_ON_CPU_N c) {
    return std::fma(double(float(a)), double(float(b)), double(float(c)));
}
CUDA_ON_CPU_NARROW CUDA_ON_CPU_P __hfma2(CUDA_ON_CPU_P a, CUDA_ON_CPU_P b, CUDA_ON_CPU_P c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
CUDA_ON_CPU_NARROW CUDA_ON_CPU_N __hneg(CUDA_ON_CPU_N a) { return -a; }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_P __hneg2(CUDA_ON_CPU_P a) { return {-a.x, -a.y}; }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_N __habs(CUDA_ON_CPU_N a) {
    return CUDA_ON_CPU_N::of(static_cast<uint16_t>(a.bits & 0x7fff));
}
CUDA_ON_CPU_NARROW CUDA_ON_CPU_N __hmax(CUDA_ON_CPU_N a, CUDA_ON_CPU_N b) { return std::fmax(float(a), float(b)); }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_N __hmin(CUDA_ON_CPU_N a, CUDA_ON_CPU_N b) { return std::fmin(float(a), float(b)); }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_P __hmax2(CUDA_ON_CPU_P a, CUDA_ON_CPU_P b) {
    return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
CUDA_ON_CPU_NARROW CUDA_ON_CPU_P __hmin2(CUDA_ON_CPU_P a, CUDA_ON_CPU_P b) {
    return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
}
#define CUDA_ON_CPU_COMPARE(name, operation) \
    CUDA_ON_CPU_NARROW bool name(CUDA_ON_CPU_N a, CUDA_ON_CPU_N b) { return a operation b; }
CUDA_ON_CPU_COMPARE(__heq, ==)
CUDA_ON_CPU_COMPARE(__hne, !=)
CUDA_ON_CPU_COMPARE(__hlt, <)
CUDA_ON_CPU_COMPARE(__hle, <=)
CUDA_ON_CPU_COMPARE(__hgt, >)
CUDA_ON_CPU_COMPARE(__hge, >=)
#undef CUDA_ON_CPU_COMPARE
CUDA_ON_CPU_NARROW bool __hisnan(CUDA_ON_CPU_N a) { return std::isnan(float(a)); }
CUDA_ON_CPU_NARROW int __hisinf(CUDA_ON_CPU_N a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }
#define CUDA_ON_CPU_UNARY(name, function)                                                              \
    CUDA_ON_CPU_NARROW CUDA_ON_CPU_N h##name(CUDA_ON_CPU_N a) { return function(float(a)); }           \
    CUDA_ON_CPU_NARROW CUDA_ON_CPU_P h2##name(CUDA_ON_CPU_P a) { return {h##name(a.x), h##name(a.y)}; }
CUDA_ON_CPU_UNARY(exp, std::exp)
CUDA_ON_CPU_UNARY(exp2, std::exp2)
CUDA_ON_CPU_UNARY(log, std::log)
CUDA_ON_CPU_UNARY(log2, std::log2)
CUDA_ON_CPU_UNARY(log10, std::log10)
CUDA_ON_CPU_UNARY(exp10, exp10f)
CUDA_ON_CPU_UNARY(sqrt, std::sqrt)
CUDA_ON_CPU_UNARY(rsqrt, 1.0f / std::sqrt)
CUDA_ON_CPU_UNARY(rcp, 1.0f /)
CUDA_ON_CPU_UNARY(sin, std::sin)
CUDA_ON_CPU_UNARY(cos, std::cos)
CUDA_ON_CPU_UNARY(tanh, std::tanh)
CUDA_ON_CPU_UNARY(floor, std::floor)
CUDA_ON_CPU_UNARY(ceil, std::ceil)
CUDA_ON_CPU_UNARY(trunc, std::trunc)
CUDA_ON_CPU_UNARY(rint, std::nearbyint)
#undef CUDA_ON_CPU_UNARY
CUDA_ON_CPU_NARROW CUDA_ON_CPU_P __habs2(CUDA_ON_CPU_P a) { return {__habs(a.x), __habs(a.y)}; }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_P __lows2half2(CUDA_ON_CPU_P a, CUDA_ON_CPU_P b) { return {a.x, b.x}; }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_P __highs2half2(CUDA_ON_CPU_P a, CUDA_ON_CPU_P b) { return {a.y, b.y}; }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_P __lowhigh2highlow(CUDA_ON_CPU_P a) { return {a.y, a.x}; }
CUDA_ON_CPU_NARROW float __low2float(CUDA_ON_CPU_P a) { return a.x; }
CUDA_ON_CPU_NARROW float __high2float(CUDA_ON_CPU_P a) { return a.y; }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_N __ldg(const CUDA_ON_CPU_N* a) { return *a; }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_N max(CUDA_ON_CPU_N a, CUDA_ON_CPU_N b) { return __hmax(a, b); }
CUDA_ON_CPU_NARROW CUDA_ON_CPU_N min(CUDA_ON_CPU_N a, CUDA_ON_CPU_N b) { return __hmin(a, b); }

// The names that carry the format: FORMAT(half, half, ...) makes __float2half, __half2float and so on.
#define CUDA_ON_CPU_FORMAT(F, T, T2, name, name2, raw)                                                          \
    using T = cuda_on_cpu::Narrow<cuda_on_cpu::F>;                                                              \
    using T2 = cuda_on_cpu::Pair<cuda_on_cpu::F>;                                                               \
    inline T __float2##name(float x) { return x; }                                                              \
    inline T __float2##name##_rn(float x) { return x; }                                                         \
    inline T __double2##name(double x) { return x; }                                                            \
    inline float __##name##2float(T x) { return x; }                                                            \
    inline T __int2##name##_rn(int x) { return x; }                                                             \
    inline T __uint2##name##_rn(unsigned x) { return x; }                                                       \
    inline T __short2##name##_rn(short x) { return x; }                                                         \
    inline T __ushort2##name##_rn(unsigned short x) { return x; }                                               \
    inline int __##name##2int_rn(T x) { return __float2int_rn(x); }                                             \
    inline int __##name##2int_rz(T x) { return __float2int_rz(x); }                                             \
    inline unsigned short __##raw##_as_ushort(T x) { return x.bits; }                                           \
    inline short __##raw##_as_short(T x) { return static_cast<short>(x.bits); }                                 \
    inline T __ushort_as_##raw(unsigned short bits) { return T::of(bits); }                                     \
    inline T __short_as_##raw(short bits) { return T::of(static_cast<uint16_t>(bits)); }                        \
    inline T2 __floats2##name2##_rn(float x, float y) { return {x, y}; }                                        \
    inline T2 __float2##name2##_rn(float x) { return {x, x}; }                                                  \
    inline T2 __float22##name2##_rn(float2 v) { return {v.x, v.y}; }                                            \
    inline T2 __##name##2##name2(T x) { return {x, x}; }                                                        \
    inline T2 __low2##name2(T2 v) { return {v.x, v.x}; }                                                        \
    inline T2 __high2##name2(T2 v) { return {v.y, v.y}; }                                                       \
    inline T2 __halves2##name2(T x, T y) { return {x, y}; }                                                     \
    inline T2 make_##name2(T x, T y) { return {x, y}; }                                                         \
    inline T __low2##name(T2 v) { return v.x; }                                                                 \
    inline T __high2##name(T2 v) { return v.y; }
