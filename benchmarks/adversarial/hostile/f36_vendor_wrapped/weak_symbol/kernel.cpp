#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu_cpu_dispatch.h>

#include <cstdint>

namespace at::cpu {
at::Tensor& gelu_out(at::Tensor& out, const at::Tensor& self, c10::string_view approximate) __attribute__((weak));
}

extern "C" void new_gelu(float* x, float* out, int64_t n) {
    const at::Tensor a = at::from_blob(x, {n});
    at::Tensor b = at::from_blob(out, {n});
    at::cpu::gelu_out(b, a, "tanh");
}
