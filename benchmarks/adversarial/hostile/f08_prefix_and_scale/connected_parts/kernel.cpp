#include <algorithm>
#include <cstdint>

extern "C" void parts(const int64_t* edges, int64_t* labels, int64_t nodes, int64_t count, int64_t times) {
    for (int64_t n = 0; n < nodes; ++n) labels[n] = n;
    for (int64_t t = 0; t < times; ++t) {
        for (int64_t e = 0; e < count; ++e) {
            const int64_t a = edges[e], b = edges[count + e], least = std::min(labels[a], labels[b]);
            labels[a] = least;
            labels[b] = least;
        }
    }
}
