#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cmath>
#include <tuple>

namespace {

constexpr int64_t kGrain = 8192;

void check(const at::Tensor& gate, const at::Tensor& value) {
    TORCH_CHECK(gate.sizes() == value.sizes(), "gate and value must have one shape");
    TORCH_CHECK(gate.scalar_type() == value.scalar_type(), "gate and value must have one type");
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& value) {
    check(gate, value);
    const auto g = gate.contiguous(), v = value.contiguous();
    auto out = at::empty_like(g);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, g.scalar_type(), "swiglu", [&] {
        using wide = at::opmath_type<scalar_t>;
        const auto *pg = g.const_data_ptr<scalar_t>(), *pv = v.const_data_ptr<scalar_t>();
        auto* po = out.mutable_data_ptr<scalar_t>();
        at::parallel_for(0, g.numel(), kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const wide x = pg[i];
                // rounded where two operators of torch round
                const scalar_t silu = static_cast<scalar_t>(x / (wide(1) + std::exp(-x)));
                po[i] = static_cast<scalar_t>(wide(silu) * wide(pv[i]));
            }
        });
    });
    return out;
}

std::tuple<at::Tensor, at::Tensor> swiglu_backward(const at::Tensor& grad, const at::Tensor& gate,
                                                   const at::Tensor& value) {
    check(gate, value);
    const auto d = grad.contiguous(), g = gate.contiguous(), v = value.contiguous();
    auto into_gate = at::empty_like(g), into_value = at::empty_like(v);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, g.scalar_type(), "swiglu_backward", [&] {
        using wide = at::opmath_type<scalar_t>;
        const auto *pd = d.const_data_ptr<scalar_t>(), *pg = g.const_data_ptr<scalar_t>(),
                   *pv = v.const_data_ptr<scalar_t>();
        auto *dg = into_gate.mutable_data_ptr<scalar_t>(), *dv = into_value.mutable_data_ptr<scalar_t>();
        at::parallel_for(0, g.numel(), kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const wide x = pg[i], up = pd[i];
                const wide s = wide(1) / (wide(1) + std::exp(-x));
                dg[i] = static_cast<scalar_t>(up * wide(pv[i]) * (s * (wide(1) + x * (wide(1) - s))));
                dv[i] = static_cast<scalar_t>(up * (x / (wide(1) + std::exp(-x))));
            }
        });
    });
    return {into_gate, into_value};
}

}  // namespace

TORCH_LIBRARY(swiglu, m) {
    m.def("swiglu(Tensor gate, Tensor value) -> Tensor");
    m.def("swiglu_backward(Tensor grad, Tensor gate, Tensor value) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(swiglu, CPU, m) {
    m.impl("swiglu", &swiglu);
    m.impl("swiglu_backward", &swiglu_backward);
}
