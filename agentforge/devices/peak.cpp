// Arithmetic ceilings of a CPU: independent multiply-adds in registers, on all threads.
//
// usage: peak SECONDS
// Prints, on one line, a JSON object with the best FLOP/s by dtype. No library's matrix product is faster,
// and the best of them come to about nine tenths of it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <omp.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif

using Clock = std::chrono::steady_clock;
// More than latency times throughput (4 x 2, on some ARM 4 x 4), and all fit into the registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int CHAINS = 24;
#else
constexpr int CHAINS = 12;
#endif

static volatile double sink; // volatile, or chains that nobody reads are never computed

template <class T> static double best_rate(double seconds) {
    typedef T Vector __attribute__((vector_size(BYTES)));
    constexpr size_t steps = 200000;
    double best = 0, spent = 0;
    while (spent < seconds) {
        auto start = Clock::now();
#pragma omp parallel
        {
            Vector chains[CHAINS], factor = {}, term = {};
            factor += T(0.999), term += T(0.001);
            for (int k = 0; k < CHAINS; ++k) chains[k] = factor + T(k);
            for (size_t step = 0; step < steps; ++step)
#pragma GCC unroll 24
                for (int k = 0; k < CHAINS; ++k) chains[k] = chains[k] * factor + term;
            T sum = 0;
            for (int k = 0; k < CHAINS; ++k) sum += chains[k][0];
            if (sum == T(42)) sink = sum;
        }
        double took = std::chrono::duration<double>(Clock::now() - start).count();
        spent += took;
        best = std::max(best, 2.0 * steps * CHAINS * (BYTES / sizeof(T)) * omp_get_max_threads() / took);
    }
    return best;
}

int main(int, char **argv) {
    double seconds = atof(argv[1]) / 2;
    double single = best_rate<float>(seconds), twice = best_rate<double>(seconds);
    printf("{\"float32\": %.6e, \"float64\": %.6e}\n", single, twice);
}
