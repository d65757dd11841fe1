#include <cstdint>

extern "C" void clock_features(const int64_t* seconds, int64_t* hours, int64_t* weekdays, int64_t n) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) {
        const int64_t t = seconds[i];
        hours[i] = t % 86400 / 3600;
        weekdays[i] = (t / 86400 + 4) % 7;
    }
}
