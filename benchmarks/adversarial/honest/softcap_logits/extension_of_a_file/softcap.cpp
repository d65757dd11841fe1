#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/utils/pybind.h>

#include <cmath>

static at::Tensor softcap(const at::Tensor& logits, double cap) {
    TORCH_CHECK(logits.scalar_type() == at::kFloat, "float32 logits are expected");
    const auto in = logits.contiguous();
    auto out = at::empty(in.sizes(), in.options());
    const float *x = in.data_ptr<float>(), bound = static_cast<float>(cap);
    float* y = out.data_ptr<float>();
    at::parallel_for(0, in.numel(), 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = bound * std::tanh(x[i] / bound);
    });
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("softcap", &softcap, "bounded logits"); }
