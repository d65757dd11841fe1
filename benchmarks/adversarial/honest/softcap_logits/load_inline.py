"""
problem: softcap_logits
policy: anything-faster
style: An extension of C++ compiled by load_inline, as in KernelBench, with at::parallel_for.
"""

import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/Parallel.h>
#include <torch/extension.h>

#include <cmath>

torch::Tensor softcap(torch::Tensor logits, double cap) {
    TORCH_CHECK(logits.scalar_type() == torch::kFloat32, "float32 logits are expected");
    const auto in = logits.contiguous();
    auto out = torch::empty(in.sizes(), in.options());
    const float *x = in.data_ptr<float>(), bound = static_cast<float>(cap);
    float* y = out.data_ptr<float>();
    at::parallel_for(0, in.numel(), 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = bound * std::tanh(x[i] / bound);
    });
    return out;
}
"""

extension = load_inline(
    name="softcap_inline", cpp_sources=source, functions=["softcap"], extra_cflags=["-O3", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, cap):
        super().__init__()
        self.cap = cap

    def forward(self, logits):
        return extension.softcap(logits, self.cap)
