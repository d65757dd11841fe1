// Cross-entropy of rows of logits and class indices, one block a row, the logits read once.
#include "rows.cuh"

template <class T>
__device__ void cross_entropy(const T* __restrict__ logits, const int64_t* __restrict__ target,
                              float* __restrict__ loss, int64_t cols, int64_t ignored) {
    const int64_t wanted = target[blockIdx.x];
    if (wanted == ignored) {  // all threads of the block agree
        if (threadIdx.x == 0) loss[blockIdx.x] = 0.0f;
        return;
    }
    logits += blockIdx.x * cols;
    Running mine;
    each_pack(logits, cols, [&](int64_t, const float* v, int count) { mine.take(v, count); });
    const Running all = mine.over_block();
    if (threadIdx.x == 0) {
        const bool valid = wanted >= 0 && wanted < cols;
        loss[blockIdx.x] = valid ? all.top + __logf(all.sum) - to_float(logits[wanted]) : NAN;
    }
}

extern "C" __global__ void __launch_bounds__(1024, 1)
cross_entropy_float(const float* __restrict__ logits, const int64_t* __restrict__ target, float* __restrict__ loss,
    int64_t cols, int64_t ignored) {
    cross_entropy(logits, target, loss, cols, ignored);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
cross_entropy_half(const __half* __restrict__ logits, const int64_t* __restrict__ target, float* __restrict__ loss,
    int64_t cols, int64_t ignored) {
    cross_entropy(logits, target, loss, cols, ignored);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
cross_entropy_bfloat16(const __nv_bfloat16* __restrict__ logits, const int64_t* __restrict__ target, float* __restrict__ loss,
    int64_t cols, int64_t ignored) {
    cross_entropy(logits, target, loss, cols, ignored);
}
