#include <atomic>
#include <cstdint>

extern "C" void count(const uint8_t* fixed, const uint8_t* moving, int64_t* out, int64_t n) {
#pragma omp parallel
    {
        int64_t own[1024] = {};
#pragma omp for nowait
        for (int64_t i = 0; i < n; ++i) ++own[(fixed[i] >> 3) << 5 | moving[i] >> 3];
        for (int b = 0; b < 1024; ++b)
            if (own[b]) std::atomic_ref<int64_t>(out[b]).fetch_add(own[b], std::memory_order_relaxed);
    }
}
