#include <cmath>
#include <cstdint>

extern "C" void pull(const float* places, const float* masses, float* out, int64_t n) {
    const float *px = places, *py = places + n, *pz = places + 2 * n;
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) {
        const float x = px[i], y = py[i], z = pz[i];
        float ax = 0.0f, ay = 0.0f, az = 0.0f;
#pragma omp simd reduction(+ : ax, ay, az)
        for (int64_t j = 0; j < n; ++j) {
            const float dx = px[j] - x, dy = py[j] - y, dz = pz[j] - z;
            const float square = dx * dx + dy * dy + dz * dz + 0.01f;
            const float inverse = 1.0f / std::sqrt(square), w = masses[j] * inverse * inverse * inverse;
            ax += w * dx;
            ay += w * dy;
            az += w * dz;
        }
        out[3 * i] = ax;
        out[3 * i + 1] = ay;
        out[3 * i + 2] = az;
    }
}
