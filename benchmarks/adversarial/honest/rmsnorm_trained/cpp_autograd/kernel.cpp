// The operators as in PyTorch's tutorial on dispatched operators: one kernel for CPU, one for Autograd.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

namespace {

constexpr double kEpsilon = 1e-6;

void check(const at::Tensor& x, const at::Tensor& weight) {
    TORCH_CHECK(x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat, "float32 is expected");
    TORCH_CHECK(x.dim() >= 1 && weight.dim() == 1 && x.size(-1) == weight.size(0), "the widths differ");
}

double scale_of(const float* x, int64_t n) {
    double squares = 0.0;
    for (int64_t i = 0; i < n; ++i) squares += double(x[i]) * x[i];
    return 1.0 / std::sqrt(squares / double(n) + kEpsilon);
}

at::Tensor rms_norm_cpu(const at::Tensor& input, const at::Tensor& weight) {
    check(input, weight);
    const at::Tensor x = input.contiguous(), w = weight.contiguous();
    at::Tensor out = at::empty_like(x);
    const int64_t n = x.size(-1);
    if (x.numel() == 0) return out;
    const float *px = x.const_data_ptr<float>(), *pw = w.const_data_ptr<float>();
    float* po = out.mutable_data_ptr<float>();
    at::parallel_for(0, x.numel() / n, 4, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const float scale = float(scale_of(px + r * n, n));
            for (int64_t i = 0; i < n; ++i) po[r * n + i] = px[r * n + i] * scale * pw[i];
        }
    });
    return out;
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward_cpu(const at::Tensor& grad_out, const at::Tensor& input,
                                                         const at::Tensor& weight) {
    check(input, weight);
    const at::Tensor g = grad_out.contiguous(), x = input.contiguous(), w = weight.contiguous();
    at::Tensor into_x = at::empty_like(x), into_w = at::empty_like(w);
    const int64_t n = x.size(-1), rows = n ? x.numel() / n : 0;
    const float *pg = g.const_data_ptr<float>(), *px = x.const_data_ptr<float>(), *pw = w.const_data_ptr<float>();
    float *dx = into_x.mutable_data_ptr<float>(), *dw = into_w.mutable_data_ptr<float>();
    constexpr int64_t kParts = 8;
    std::vector<double> sums(kParts * n, 0.0);
    at::parallel_for(0, kParts, 1, [&](int64_t first, int64_t last) {
        for (int64_t part = first; part < last; ++part) {
            double* sum = sums.data() + part * n;
            for (int64_t r = rows * part / kParts; r < rows * (part + 1) / kParts; ++r) {
                const float *gr = pg + r * n, *xr = px + r * n;
                const double scale = scale_of(xr, n);
                double along = 0.0;
                for (int64_t i = 0; i < n; ++i) along += double(gr[i]) * pw[i] * (xr[i] * scale);
                along /= double(n);
                for (int64_t i = 0; i < n; ++i) {
                    const double unit = xr[i] * scale;
                    dx[r * n + i] = float(scale * (double(gr[i]) * pw[i] - unit * along));
                    sum[i] += gr[i] * unit;
                }
            }
        }
    });
    for (int64_t i = 0; i < n; ++i) {
        double sum = 0.0;
        for (int64_t part = 0; part < kParts; ++part) sum += sums[part * n + i];
        dw[i] = float(sum);
    }
    return {into_x, into_w};
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight) {
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("rms::rms_norm", "")
                         .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
    return op.call(x, weight);
}

struct RMSNorm : public torch::autograd::Function<RMSNorm> {
    static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                              const at::Tensor& weight) {
        at::AutoDispatchBelowADInplaceOrView guard;
        context->save_for_backward({x, weight});
        return rms_norm(x, weight);
    }

    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                   const torch::autograd::variable_list& grads) {
        const auto saved = context->get_saved_variables();
        auto [into_x, into_w] = rms_norm_backward_cpu(grads[0], saved[0], saved[1]);
        return {into_x, into_w};
    }
};

at::Tensor rms_norm_autograd(const at::Tensor& x, const at::Tensor& weight) { return RMSNorm::apply(x, weight); }

}  // namespace

TORCH_LIBRARY(rms, m) { m.def("rms_norm(Tensor x, Tensor weight) -> Tensor"); }

TORCH_LIBRARY_IMPL(rms, CPU, m) { m.impl("rms_norm", &rms_norm_cpu); }

TORCH_LIBRARY_IMPL(rms, Autograd, m) { m.impl("rms_norm", &rms_norm_autograd); }
