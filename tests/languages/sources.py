"""Sources that several tests build."""

from agentforge.schema import Solution
from agentforge.testing.language import make_solution

RMSNORM_CPP = """\
#include <cmath>
#include <cstdint>
#include "scale.hpp"

// extern "C" void commented_out(float* x);
extern "C" void rmsnorm(const float* __restrict__ x, const float* weight, float* out,
                        int64_t rows, int64_t cols, float eps) {
#pragma omp parallel for
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++) sum += x[i * cols + j] * x[i * cols + j];
        const float r = scale(1 / std::sqrt(sum / cols + eps));
        for (int64_t j = 0; j < cols; j++) out[i * cols + j] = x[i * cols + j] * r * weight[j];
    }
}
"""
SCALE_HPP = "inline float scale(float x) { return x; }\n"
RMSNORM_PY = """\
import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        out = torch.empty_like(x)
        lib.rmsnorm(x, weight, out, x.shape[0], x.shape[1], 1e-6)
        return out
"""
RMSNORM = {"model_new.py": RMSNORM_PY, "kernel.cpp": RMSNORM_CPP, "scale.hpp": SCALE_HPP}


def rmsnorm_solution(**changes: str) -> Solution:
    """The RMSNorm solution with files replaced: `kernel_cpp="..."`."""
    files = {path: changes.get(path.replace(".", "_"), content) for path, content in RMSNORM.items()}
    return make_solution("cpp", files)
