#include <cstdint>
#include <utility>
#include <vector>

// Whether torch.max prefers b to a: the first of equal numbers, and the first NaN to any number.
static inline bool better(float b, float a) { return b > a || (b != b && a == a); }

extern "C" void viterbi(const float* emissions, const float* transitions, int64_t* path, float* score, int64_t batch,
                        int64_t steps, int64_t labels) {
#pragma omp parallel for
    for (int64_t b = 0; b < batch; ++b) {
        thread_local std::vector<uint8_t> froms;
        thread_local std::vector<float> memory;
        froms.resize(steps * labels);
        memory.resize(2 * labels);
        float *now = memory.data(), *next = now + labels;
        const float* emitted = emissions + b * steps * labels;
        for (int64_t j = 0; j < labels; ++j) now[j] = emitted[j];
        for (int64_t t = 1; t < steps; ++t) {
            uint8_t* from = froms.data() + t * labels;
            for (int64_t j = 0; j < labels; ++j) next[j] = now[0] + transitions[j], from[j] = 0;
            for (int64_t i = 1; i < labels; ++i)
                for (int64_t j = 0; j < labels; ++j) {
                    const float way = now[i] + transitions[i * labels + j];
                    const bool take = better(way, next[j]);
                    next[j] = take ? way : next[j];
                    from[j] = take ? uint8_t(i) : from[j];
                }
            for (int64_t j = 0; j < labels; ++j) next[j] += emitted[t * labels + j];
            std::swap(now, next);
        }
        int64_t label = 0;
        for (int64_t j = 1; j < labels; ++j)
            if (better(now[j], now[label])) label = j;
        score[b] = now[label];
        for (int64_t t = steps - 1; t >= 0; --t) {
            path[b * steps + t] = label;
            if (t) label = froms[t * labels + label];
        }
    }
}
