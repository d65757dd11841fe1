#include <cstdint>
#include <cstring>
#include <vector>

static inline float larger(float a, float b) { return b > a || b != b ? b : a; }

extern "C" void pool(const float* x, float* out, int64_t planes, int64_t height, int64_t width) {
    const int64_t rows = (height - 1) / 2 + 1, columns = (width - 1) / 2 + 1, across = width + 2;
#pragma omp parallel
    {
        std::vector<float> padded((height + 2) * across, 0.0f), most(across);
#pragma omp for
        for (int64_t p = 0; p < planes; ++p) {
            for (int64_t r = 0; r < height; ++r)
                std::memcpy(&padded[(r + 1) * across + 1], x + (p * height + r) * width, width * sizeof(float));
            for (int64_t r = 0; r < rows; ++r) {
                const float* a = &padded[2 * r * across];
                for (int64_t c = 0; c < across; ++c) most[c] = larger(larger(a[c], a[c + across]), a[c + 2 * across]);
                float* y = out + (p * rows + r) * columns;
                for (int64_t c = 0; c < columns; ++c) y[c] = larger(larger(most[2 * c], most[2 * c + 1]), most[2 * c + 2]);
            }
        }
    }
}
