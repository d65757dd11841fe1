#include <bit>
#include <cmath>
#include <cstdint>

// bfloat16 is the upper half of a float; the lower half is rounded to nearest even.
struct BFloat16 {
    uint16_t bits;
    operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
    static BFloat16 of(float value) {
        const uint32_t word = std::bit_cast<uint32_t>(value);
        if ((word & 0x7fffffffu) > 0x7f800000u) return {0x7fc0};
        return {uint16_t((word + 0x7fffu + ((word >> 16) & 1u)) >> 16)};
    }
};

static inline void put(float& place, float value) { place = value; }
static inline void put(double& place, double value) { place = value; }
static inline void put(BFloat16& place, float value) { place = BFloat16::of(value); }

template <class T, class Wide>
static void forward(const T* x, T* y, int64_t n) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        const Wide v = x[i];
        put(y[i], v / (Wide(1) + std::exp(-v)));
    }
}

template <class T, class Wide>
static void backward(const T* grad, const T* x, T* out, int64_t n) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; ++i) {
        const Wide v = x[i], g = grad[i];
        const Wide s = Wide(1) / (Wide(1) + std::exp(-v));
        put(out[i], g * s * (Wide(1) + v * (Wide(1) - s)));
    }
}

extern "C" {
void silu_float32(const float* x, float* y, int64_t n) { forward<float, float>(x, y, n); }
void silu_float64(const double* x, double* y, int64_t n) { forward<double, double>(x, y, n); }
void silu_bfloat16(const uint16_t* x, uint16_t* y, int64_t n) {
    forward<BFloat16, float>(reinterpret_cast<const BFloat16*>(x), reinterpret_cast<BFloat16*>(y), n);
}
void silu_backward_float32(const float* g, const float* x, float* out, int64_t n) {
    backward<float, float>(g, x, out, n);
}
void silu_backward_float64(const double* g, const double* x, double* out, int64_t n) {
    backward<double, double>(g, x, out, n);
}
void silu_backward_bfloat16(const uint16_t* g, const uint16_t* x, uint16_t* out, int64_t n) {
    backward<BFloat16, float>(reinterpret_cast<const BFloat16*>(g), reinterpret_cast<const BFloat16*>(x),
                              reinterpret_cast<BFloat16*>(out), n);
}
}
