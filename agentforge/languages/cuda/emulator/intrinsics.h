// Mathematical and bit intrinsics, loads and stores with cache hints.
#pragma once

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <limits>
#include <type_traits>

#include "threads.h"

// ------------------------------------------------------------------------------------------ arithmetic

template <class A, class B>
    requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr std::common_type_t<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) return std::fmin(T(a), T(b));
    return T(b) < T(a) ? T(b) : T(a);
}
template <class A, class B>
    requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr std::common_type_t<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) return std::fmax(T(a), T(b));
    return T(a) < T(b) ? T(b) : T(a);
}
inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
using std::abs;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
inline float normcdff(float x) { return 0.5f * std::erfc(-x * 0.70710678118654752f); }
inline double normcdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752); }
// Newton's method on the distribution function, in doubles, from a first guess of a rational function.
inline double normcdfinv(double p) {
    if (!(p > 0.0 && p < 1.0)) return p == 0.0 ? -HUGE_VAL : p == 1.0 ? HUGE_VAL : std::nan("");
    const double t = std::sqrt(-2.0 * std::log(std::fmin(p, 1.0 - p)));
    double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    if (p < 0.5) x = -x;
    for (int i = 0; i < 6; i++)
        x -= (normcdf(x) - p) * 2.5066282746310002 * std::exp(0.5 * x * x);
    return x;
}
inline float normcdfinvf(float p) { return static_cast<float>(normcdfinv(p)); }
inline double erfinv(double x) { return normcdfinv(0.5 * (x + 1.0)) * 0.70710678118654752; }
inline float erfinvf(float x) { return static_cast<float>(erfinv(x)); }
inline double erfcinv(double x) { return -normcdfinv(0.5 * x) * 0.70710678118654752; }
inline float erfcinvf(float x) { return static_cast<float>(erfcinv(x)); }
inline float rhypotf(float a, float b) { return static_cast<float>(1.0 / std::hypot(double(a), double(b))); }
inline float norm3df(float a, float b, float c) { return std::hypot(a, b, c); }
inline float rnorm3df(float a, float b, float c) { return 1.0f / std::hypot(a, b, c); }
inline float sinpif(float x) { return static_cast<float>(std::sin(3.14159265358979323846 * x)); }
inline float cospif(float x) { return static_cast<float>(std::cos(3.14159265358979323846 * x)); }
inline float fdividef(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
// As a GPU does it: a negative base gives NaN.
inline float __powf(float x, float y) { return std::exp2(y * std::log2(x)); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline float __tanhf(float x) { return std::tanh(x); }
inline void __sincosf(float x, float* sine, float* cosine) { *sine = std::sin(x), *cosine = std::cos(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

namespace cuda_on_cpu {

// The same value, which no multiply-add absorbs: functions with a rounding in their name are never fused.
template <class T>
T rounded(T x) {
#if defined(__x86_64__)
    asm("" : "+x"(x));
#else
    asm("" : "+w"(x));
#endif
    return x;
}

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_ROUNDED(mode, T, f, fused)                                                                \
    inline T __##f##add_##mode(T a, T b) { return cuda_on_cpu::rounded(a) + cuda_on_cpu::rounded(b); }        \
    inline T __##f##sub_##mode(T a, T b) { return cuda_on_cpu::rounded(a) - cuda_on_cpu::rounded(b); }        \
    inline T __##f##mul_##mode(T a, T b) { return cuda_on_cpu::rounded(a * b); }                              \
    inline T __##f##div_##mode(T a, T b) { return a / b; }                                                    \
    inline T fused##_##mode(T a, T b, T c) { return std::fma(a, b, c); }                                      \
    inline T __##f##rcp_##mode(T x) { return T(1) / x; }                                                      \
    inline T __##f##sqrt_##mode(T x) { return std::sqrt(x); }
CUDA_ON_CPU_ROUNDED(rn, float, f, __fmaf)
CUDA_ON_CPU_ROUNDED(rn, double, d, __fma)
#undef CUDA_ON_CPU_ROUNDED
inline float __frsqrt_rn(float x) { return rsqrtf(x); }

// ----------------------------------------------------------------------------------------- conversions

namespace cuda_on_cpu {

// As a GPU does it: what lies beyond the type becomes its nearest value, NaN 0 or, for 64 bits, the highest bit.
template <class To, class From>
To to_integer(From x) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) {
        if (sizeof(To) < 8 && sizeof(From) < 8) return 0;
        return static_cast<To>(std::make_unsigned_t<To>{1} << (8 * sizeof(To) - 1));
    }
    if (x >= static_cast<From>(Limits::max())) return Limits::max();
    if (x <= static_cast<From>(Limits::min())) return Limits::min();
    return static_cast<To>(x);
}

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_TO_INTEGER(mode, round)                                                                      \
    inline int __float2int_##mode(float x) { return cuda_on_cpu::to_integer<int>(round(x)); }                    \
    inline unsigned __float2uint_##mode(float x) { return cuda_on_cpu::to_integer<unsigned>(round(x)); }         \
    inline long long __float2ll_##mode(float x) { return cuda_on_cpu::to_integer<long long>(round(x)); }         \
    inline int __double2int_##mode(double x) { return cuda_on_cpu::to_integer<int>(round(x)); }                  \
    inline unsigned __double2uint_##mode(double x) { return cuda_on_cpu::to_integer<unsigned>(round(x)); }       \
    inline long long __double2ll_##mode(double x) { return cuda_on_cpu::to_integer<long long>(round(x)); }
CUDA_ON_CPU_TO_INTEGER(rn, std::nearbyint)
CUDA_ON_CPU_TO_INTEGER(rz, std::trunc)
CUDA_ON_CPU_TO_INTEGER(rd, std::floor)
CUDA_ON_CPU_TO_INTEGER(ru, std::ceil)
#undef CUDA_ON_CPU_TO_INTEGER
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

// ------------------------------------------------------------------------------------------------ bits

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++) reversed |= (x >> i & 1) << (31 - i);
    return reversed;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++)
        result |= static_cast<unsigned>(both >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline int __mul24(int a, int b) { return a * b; }
inline unsigned __umul24(unsigned a, unsigned b) { return a * b; }
inline long long __mul64hi(long long a, long long b) {
    return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<uint64_t>(a) + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) {
    return static_cast<unsigned>((static_cast<uint64_t>(a) + b + 1) >> 1);
}
inline unsigned __sad(int a, int b, unsigned c) { return c + (a > b ? unsigned(a) - unsigned(b) : unsigned(b) - unsigned(a)); }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
// Time passes, but not as on a GPU.
inline long long clock64() {
    timespec now;  // <chrono> would take a third of the time that a file takes to compile
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}
// Four products of bytes, added to `c`; sums wrap.
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
    return c;
}
inline int __dp4a(int a, int b, int c) {
    auto sum = static_cast<unsigned>(c);
    for (int i = 0; i < 32; i += 8)
        sum += static_cast<unsigned>(static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i));
    return static_cast<int>(sum);
}
inline int __dp4a(char4 a, char4 b, int c) {
    return __dp4a(__builtin_bit_cast(int, a), __builtin_bit_cast(int, b), c);
}
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
    return __dp4a(__builtin_bit_cast(unsigned, a), __builtin_bit_cast(unsigned, b), c);
}

// ------------------------------------------------------------------------------------ loads and stores

#define CUDA_ON_CPU_LOAD(name) \
    template <class T>         \
    T name(const T* address) { return *address; }
CUDA_ON_CPU_LOAD(__ldg)
CUDA_ON_CPU_LOAD(__ldca)
CUDA_ON_CPU_LOAD(__ldcg)
CUDA_ON_CPU_LOAD(__ldcs)
CUDA_ON_CPU_LOAD(__ldcv)
CUDA_ON_CPU_LOAD(__ldlu)
#undef CUDA_ON_CPU_LOAD
#define CUDA_ON_CPU_STORE(name) \
    template <class T>          \
    void name(T* address, std::type_identity_t<T> value) { *address = value; }
CUDA_ON_CPU_STORE(__stcg)
CUDA_ON_CPU_STORE(__stcs)
CUDA_ON_CPU_STORE(__stwb)
CUDA_ON_CPU_STORE(__stwt)
#undef CUDA_ON_CPU_STORE
