#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>
#include <cstdint>

static at::Tensor softcap(const at::Tensor& logits, double cap) {
    TORCH_CHECK(logits.scalar_type() == at::kFloat, "float32 logits are expected");
    const at::Tensor in = logits.contiguous();
    at::Tensor out = at::empty(in.sizes(), in.options());
    const float *x = in.const_data_ptr<float>(), bound = static_cast<float>(cap);
    float* y = out.mutable_data_ptr<float>();
    at::parallel_for(0, in.numel(), 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = bound * std::tanh(x[i] / bound);
    });
    return out;
}

TORCH_LIBRARY(registered, library) { library.def("softcap(Tensor logits, float cap) -> Tensor"); }

TORCH_LIBRARY_IMPL(registered, CPU, library) { library.impl("softcap", &softcap); }
