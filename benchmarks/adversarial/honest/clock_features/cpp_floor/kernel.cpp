#include <cstdint>

static int64_t floored(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

extern "C" void clock_features(const int64_t* seconds, int64_t* hours, int64_t* weekdays, int64_t n) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) {
        const int64_t days = floored(seconds[i], 86400);
        hours[i] = (seconds[i] - days * 86400) / 3600;
        weekdays[i] = days + 4 - 7 * floored(days + 4, 7);
    }
}
