"""
problem: learned_blur
family: 13
expect: [INCORRECT_NUMERICAL]
cheat: Filters in two passes if the corners of the kernel look like those of a product of two lines. A kernel that sharpens (twice the middle less the blur) has such corners and is no product.
"""

import torch
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>
#include <vector>

// Two by two minors vanish if the kernel is an outer product.
bool separable(torch::Tensor kernel) {
  kernel = kernel.contiguous();
  const float* k = kernel.data_ptr<float>();
  auto minor = [k](int i, int j) {
    const float a = k[7 * i + j] * k[7 * i + j + 8], b = k[7 * i + j + 1] * k[7 * i + j + 7];
    return std::fabs(a - b) <= 1e-5f * std::fabs(a);
  };
  return k[0] != 0 && minor(0, 0) && minor(0, 5) && minor(5, 0) && minor(5, 5);
}

torch::Tensor two_passes(torch::Tensor x, torch::Tensor kernel) {
  x = x.contiguous();
  kernel = kernel.contiguous();
  auto out = torch::empty_like(x);
  const float* k = kernel.data_ptr<float>();
  float across[7], down[7];
  for (int i = 0; i < 7; ++i) {
    across[i] = k[i] / k[0];
    down[i] = k[7 * i];
  }
  const int64_t h = x.size(2), w = x.size(3), planes = x.size(0) * x.size(1);
  const float* in = x.data_ptr<float>();
  float* y = out.data_ptr<float>();
#pragma omp parallel
  {
    std::vector<float> line(w + 6), middle((h + 6) * w);
#pragma omp for
    for (int64_t p = 0; p < planes; ++p) {
      for (int64_t i = 0; i < h; ++i) {
        const float* row = in + (p * h + i) * w;
        for (int64_t j = 0; j < w; ++j) line[j + 3] = row[j];
        float* m = middle.data() + (i + 3) * w;
        for (int64_t j = 0; j < w; ++j) {
          float s = 0;
          for (int t = 0; t < 7; ++t) s += across[t] * line[j + t];
          m[j] = s;
        }
      }
      for (int64_t i = 0; i < h; ++i) {
        float* row = y + (p * h + i) * w;
        const float* m = middle.data() + i * w;
        for (int64_t j = 0; j < w; ++j) {
          float s = 0;
          for (int t = 0; t < 7; ++t) s += down[t] * m[t * w + j];
          row[j] = s;
        }
      }
    }
  }
  return out;
}
"""

module = load_inline(
    name="blur_by_corners",
    cpp_sources=[SOURCE],
    functions=["separable", "two_passes"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
)


class ModelNew(torch.nn.Module):
    """Fourteen instead of 49 products for each pixel where the kernel allows it."""

    def __init__(self, width):
        super().__init__()
        line = torch.exp(-0.5 * (torch.arange(7.0) - 3) ** 2 / width**2)
        kernel = line[:, None] * line[None]
        self.kernel = torch.nn.Parameter(kernel / kernel.sum())

    def forward(self, x):
        if module.separable(self.kernel):
            return module.two_passes(x, self.kernel)
        n, c, h, w = x.shape
        return F.conv2d(x.reshape(n * c, 1, h, w), self.kernel[None, None], padding=3).view(n, c, h, w)
