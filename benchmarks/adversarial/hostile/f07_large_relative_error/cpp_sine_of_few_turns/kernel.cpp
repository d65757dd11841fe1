#include <cmath>
#include <cstdint>

extern "C" void sine(const float* x, float* out, int64_t n) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) {
        float v = x[i];
        float k = std::nearbyintf(v * 0.318309886f);
        float r = v - k * 3.140625f;
        r = r - k * 9.67502593994140625e-4f;
        r = r - k * 1.509957990978376432e-7f;
        float r2 = r * r;
        float p = 2.6083159809786593541503e-06f;
        p = p * r2 - 0.0001981069071916863322258f;
        p = p * r2 + 0.00833307858556509017944336f;
        p = p * r2 - 0.166666597127914428710938f;
        float s = r + r * r2 * p;
        float odd = k - 2.0f * std::floor(k * 0.5f);
        out[i] = s * (1.0f - 2.0f * odd);
    }
}
