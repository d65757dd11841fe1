#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

static int64_t square(const int16_t* a, const int16_t* b, int64_t width) {
    int64_t sum = 0;
    for (int64_t d = 0; d < width; ++d) {
        const int64_t apart = int64_t(a[d]) - b[d];
        sum += apart * apart;
    }
    return sum;
}

// Calls `found(j, square)` for all neighbours j > i of the point at `place` of the order.
template <class Found>
static void sweep(const int16_t* points, const int64_t* order, int64_t place, int64_t n, int64_t width, int64_t reach,
                  Found found) {
    const int64_t i = order[place];
    const int16_t* own = points + i * width;
    for (int step : {-1, 1}) {
        for (int64_t at = place + step; at >= 0 && at < n; at += step) {
            const int64_t j = order[at];
            const int16_t* other = points + j * width;
            const int64_t apart = int64_t(other[0]) - own[0];
            if (apart > reach || apart < -reach) break;
            if (j < i) continue;
            const int64_t s = square(own, other, width);
            if (s <= reach * reach) found(j, s);
        }
    }
}

extern "C" void count(const int16_t* points, const int64_t* order, int64_t* counts, int64_t n, int64_t width,
                      int64_t reach) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t place = 0; place < n; ++place) {
        int64_t number = 0;
        sweep(points, order, place, n, width, reach, [&](int64_t, int64_t) { ++number; });
        counts[order[place]] = number;
    }
}

extern "C" void fill(const int16_t* points, const int64_t* order, const int64_t* starts, int64_t* pairs,
                     float* squares, int64_t n, int64_t width, int64_t reach, int64_t total) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t place = 0; place < n; ++place) {
        std::vector<std::pair<int64_t, int64_t>> near;
        sweep(points, order, place, n, width, reach, [&](int64_t j, int64_t s) { near.emplace_back(j, s); });
        std::sort(near.begin(), near.end());
        int64_t to = starts[order[place]];
        for (const auto& [j, s] : near) {
            pairs[to] = order[place];
            pairs[total + to] = j;
            squares[to++] = float(s);
        }
    }
}
