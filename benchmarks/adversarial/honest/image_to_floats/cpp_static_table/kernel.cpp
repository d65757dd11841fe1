#include <array>
#include <cstdint>

using Table = std::array<std::array<float, 256>, 3>;

static Table make() {
    constexpr float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
    Table table{};
    for (int c = 0; c < 3; ++c)
        for (int b = 0; b < 256; ++b) table[c][b] = (b / 255.0f - mean[c]) / deviation[c];
    return table;
}

static const Table table = make();

extern "C" void convert(const uint8_t* image, float* out, int64_t n, int64_t pixels) {
#pragma omp parallel for collapse(2)
    for (int64_t i = 0; i < n; ++i)
        for (int64_t c = 0; c < 3; ++c)
            for (int64_t p = 0; p < pixels; ++p)
                out[(i * 3 + c) * pixels + p] = table[c][image[(i * pixels + p) * 3 + c]];
}
