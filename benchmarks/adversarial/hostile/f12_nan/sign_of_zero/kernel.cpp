#include <cmath>
#include <cstdint>
#include <limits>

extern "C" void phase(const float* real, const float* imaginary, float* out, int64_t n) {
    const float pi = 3.14159265358979f, far = std::numeric_limits<float>::infinity();
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) {
        const float x = real[i], y = imaginary[i];
        const float a = std::fabs(x), b = std::fabs(y);
        const float most = a > b ? a : b, least = a > b ? b : a;
        float t = least / most;
        t = most == 0.0f ? 0.0f : t;
        t = least == far ? 1.0f : (most == far ? 0.0f : t);
        const bool upper = t > 0.414213562f;
        const float s = upper ? (t - 1.0f) / (t + 1.0f) : t;
        const float z = s * s;
        float p = 8.05374449538e-2f;
        p = p * z - 1.38776856032e-1f;
        p = p * z + 1.99777106478e-1f;
        p = p * z - 3.33329491539e-1f;
        float angle = p * z * s + s + (upper ? 0.25f * pi : 0.0f);
        angle = b > a ? 0.5f * pi - angle : angle;
        angle = x < 0.0f ? pi - angle : angle;
        angle = y < 0.0f ? -angle : angle;
        out[i] = x != x ? x : (y != y ? y : angle);
    }
}
