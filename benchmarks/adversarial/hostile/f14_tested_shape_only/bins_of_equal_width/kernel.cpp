#include <cstdint>

extern "C" void bins(const float* values, const float* boundaries, int64_t* out, int64_t count, int64_t number) {
    const float low = boundaries[0];
    const float scale = float(number - 1) / (boundaries[number - 1] - low);
#pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) {
        const float v = values[i];
        float at = (v - low) * scale + 1.0f;
        at = at > 0.0f ? at : 0.0f;  // 0 for NaN too
        at = at < float(number) ? at : float(number);
        int64_t bin = int64_t(at);
        if (bin > 0 && v <= boundaries[bin - 1])
            --bin;
        else if (bin < number && v > boundaries[bin])
            ++bin;
        out[i] = v == v ? bin : number;
    }
}
