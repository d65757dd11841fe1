#include <cstdint>

static constexpr int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static constexpr float W[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};

// Every cell pushes its nine numbers to nine places that no other cell writes to.
extern "C" void step(const float* __restrict f, float* __restrict out, int64_t height, int64_t width, float omega) {
    const int64_t plane = height * width;
#pragma omp parallel for schedule(static)
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x) {
            float g[9], density = 0.0f, vx = 0.0f, vy = 0.0f;
            for (int i = 0; i < 9; ++i) {
                g[i] = f[i * plane + y * width + x];
                density += g[i];
                vx += float(CX[i]) * g[i];
                vy += float(CY[i]) * g[i];
            }
            vx /= density;
            vy /= density;
            const float energy = 1.5f * (vx * vx + vy * vy);
            for (int i = 0; i < 9; ++i) {
                const float along = 3.0f * (float(CX[i]) * vx + float(CY[i]) * vy);
                const float rest = W[i] * density * (1.0f + along + 0.5f * along * along - energy);
                const int64_t to_y = (y + CY[i] + height) % height, to_x = (x + CX[i] + width) % width;
                out[i * plane + to_y * width + to_x] = g[i] + omega * (rest - g[i]);
            }
        }
}
