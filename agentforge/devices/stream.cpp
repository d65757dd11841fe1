// Streaming ceilings of a CPU: for each working set, the best rate over several patterns.
//
// usage: stream SECONDS BYTES...
// For each number of bytes (the sum of the arrays of a pattern) prints, on one last line, a JSON list of
// the best bytes/s, read and written. Plain stores first read the line that they overwrite, which costs
// half of a copy's useful traffic again; stores that bypass the cache do not, so they show the ceiling.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <omp.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

using Clock = std::chrono::steady_clock;

static void span(size_t n, size_t &first, size_t &last) {
    size_t blocks = n / 64, threads = omp_get_num_threads(), me = omp_get_thread_num();
    first = blocks * me / threads * 64;
    last = blocks * (me + 1) / threads * 64;
}

static volatile float sink; // volatile, or the sum that nobody reads is never computed

// A pass may not be merged with the next one: memory counts as changed in between.
static inline void between_passes() { asm volatile("" ::: "memory"); }

static void read_only(const float *a, size_t n, int passes) {
#pragma omp parallel
    {
        size_t first, last;
        span(n, first, last);
        float lanes[64] = {};
        for (int pass = 0; pass < passes; ++pass) {
            between_passes();
            for (size_t i = first; i < last; i += 64)
#pragma omp simd
                for (int k = 0; k < 64; ++k) lanes[k] += a[i + k];
        }
        float sum = 0;
        for (float lane : lanes) sum += lane;
        if (sum == 42.0f) sink = sum;
    }
}

static void copy(float *out, const float *a, size_t n, int passes) {
#pragma omp parallel
    {
        size_t first, last;
        span(n, first, last);
        for (int pass = 0; pass < passes; ++pass) {
            between_passes();
#pragma omp simd
            for (size_t i = first; i < last; ++i) out[i] = a[i] + float(pass);
        }
    }
}

static void copy_bypassing(float *out, const float *a, size_t n, int passes) {
#if defined(__AVX__)
#pragma omp parallel
    {
        size_t first, last;
        span(n, first, last);
        for (int pass = 0; pass < passes; ++pass) {
            between_passes();
            for (size_t i = first; i < last; i += 8) _mm256_stream_ps(out + i, _mm256_load_ps(a + i));
        }
        _mm_sfence();
    }
#else
    copy(out, a, n, passes);
#endif
}

template <class Body> static double best_rate(double bytes, double seconds, Body body) {
    // Small working sets: enough passes that entering the parallel region weighs nothing. Their number
    // does not depend on a timing, which on a busy machine is mostly the wait for a processor.
    int passes = std::max(1, int(256e6 / bytes));
    double best = 0, spent = 0;
    for (int call = 0; call < 4 || spent < seconds; ++call) {
        auto start = Clock::now();
        body(passes);
        double took = std::chrono::duration<double>(Clock::now() - start).count();
        spent += took;
        // The first call pays for the page tables and the waking of the threads.
        if (call > 0) best = std::max(best, bytes * passes / took);
    }
    return best;
}

int main(int argc, char **argv) {
    double seconds = atof(argv[1]) / (argc - 2) / 3;
    printf("[");
    for (int k = 2; k < argc; ++k) {
        size_t n = strtoull(argv[k], nullptr, 10) / sizeof(float) / 128 * 64;
        float *a = static_cast<float *>(aligned_alloc(4096, (n * sizeof(float) + 4095) / 4096 * 4096));
        float *b = static_cast<float *>(aligned_alloc(4096, (n * sizeof(float) + 4095) / 4096 * 4096));
        if (!a || !b || !n) return 1;
#pragma omp parallel
        {
            size_t first, last;
            span(n, first, last);
            for (size_t i = first; i < last; ++i) a[i] = b[i] = 1.0f;
        }
        double bytes = double(n) * sizeof(float);
        double best = best_rate(bytes, seconds, [&](int passes) { read_only(a, n, passes); });
        best = std::max(best, best_rate(2 * bytes, seconds, [&](int p) { copy(b, a, n, p); }));
        best = std::max(best, best_rate(2 * bytes, seconds, [&](int p) { copy_bypassing(b, a, n, p); }));
        printf("%s%.6e", k > 2 ? ", " : "", best);
        free(a);
        free(b);
    }
    printf("]\n");
}
