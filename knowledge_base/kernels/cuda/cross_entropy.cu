// Cross-entropy of rows of logits and class indices, one block a row, the logits read once; then the losses' sum
// or mean, in one block and a fixed order.
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

template <class T>
__device__ void reduce_losses(const float* __restrict__ loss, const int64_t* __restrict__ target, T* __restrict__ out,
                              int64_t rows, int64_t ignored, bool mean) {
    float sum = 0.0f, counted = 0.0f;
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
        sum += loss[i];
        counted += target[i] != ignored ? 1.0f : 0.0f;
    }
    sum = over_block(sum, Sum());
    counted = over_block(counted, Sum());
    if (threadIdx.x == 0) *out = from_float<T>(mean ? sum / counted : sum);
}

extern "C" __global__ void __launch_bounds__(1024, 1)
reduce_losses_float(const float* __restrict__ loss, const int64_t* __restrict__ target, float* __restrict__ out,
    int64_t rows, int64_t ignored, bool mean) {
    reduce_losses(loss, target, out, rows, ignored, mean);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
reduce_losses_half(const float* __restrict__ loss, const int64_t* __restrict__ target, __half* __restrict__ out,
    int64_t rows, int64_t ignored, bool mean) {
    reduce_losses(loss, target, out, rows, ignored, mean);
}
extern "C" __global__ void __launch_bounds__(1024, 1)
reduce_losses_bfloat16(const float* __restrict__ loss, const int64_t* __restrict__ target, __nv_bfloat16* __restrict__ out,
    int64_t rows, int64_t ignored, bool mean) {
    reduce_losses(loss, target, out, rows, ignored, mean);
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
