#include <algorithm>
#include <cstdint>
#include <vector>

struct Box {
    float x0, y0, x1, y1, area;
};

static inline float side(float low_a, float low_b, float high_a, float high_b) {
    return std::max(std::min(high_a, high_b) - std::max(low_a, low_b), 0.0f);
}

extern "C" void suppress(const float* low, const float* high, const int64_t* order, bool* keep, int64_t n) {
    std::vector<Box> kept;
    kept.reserve(n);
    for (int64_t i = 0; i < n; ++i) {
        const Box box = {low[2 * i], low[2 * i + 1], high[2 * i], high[2 * i + 1],
                         (high[2 * i] - low[2 * i]) * (high[2 * i + 1] - low[2 * i + 1])};
        const bool whole = box.x0 == box.x0 && box.y0 == box.y0 && box.x1 == box.x1 && box.y1 == box.y1;
        bool stays = true;
        if (whole)
            for (const Box& other : kept) {
                const float inner = side(box.x0, other.x0, box.x1, other.x1) * side(box.y0, other.y0, box.y1, other.y1);
                if (inner / (other.area + box.area - inner) > 0.5f) {
                    stays = false;
                    break;
                }
            }
        if (stays && whole) kept.push_back(box);
        keep[order[i]] = stays;
    }
}
