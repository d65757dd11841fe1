#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

namespace {

void softmax_row(const float* x, float* y, int64_t n) {
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) {
        y[i] = std::exp(x[i] - most);
        sum += y[i];
    }
    const float scale = 1.0f / sum;
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

at::Tensor softmax(const at::Tensor& input) {
    TORCH_CHECK(input.device().is_cpu(), "softmax: a CPU tensor is expected");
    TORCH_CHECK(input.scalar_type() == at::kFloat, "softmax: float32 is expected, not ", input.scalar_type());
    TORCH_CHECK(input.dim() >= 1, "softmax: at least one dimension is expected");
    const at::Tensor x = input.contiguous();
    at::Tensor y = at::empty_like(x);
    const int64_t n = x.size(-1);
    if (x.numel() == 0) return y;
    const int64_t rows = x.numel() / n;
    const float* from = x.data_ptr<float>();
    float* to = y.data_ptr<float>();
    at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) softmax_row(from + r * n, to + r * n, n);
    });
    return y;
}

}  // namespace

TORCH_LIBRARY(softmax, m) { m.def("softmax", &softmax); }
