#include <cstdint>

extern "C" bool add_weights(const int64_t* labels, const float* weights, float* out, int64_t n, int64_t classes) {
    for (int64_t i = 0; i < n; ++i) {
        if (labels[i] < 0 || labels[i] >= classes) return false;
        out[labels[i]] += weights[i];
    }
    return true;
}
