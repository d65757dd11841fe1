"""
problem: silu_trained
policy: custom-only
style: An autograd.Function around own kernels, one for each type, chosen from a dictionary; torch's operator for types without a kernel.
"""

import torch
import torch.nn.functional as F
from agentforge_cpp import load

_lib = load(__file__, "kernel.cpp")
_FORWARD = {
    torch.float32: _lib.silu_float32,
    torch.float64: _lib.silu_float64,
    torch.bfloat16: _lib.silu_bfloat16,
}
_BACKWARD = {
    torch.float32: _lib.silu_backward_float32,
    torch.float64: _lib.silu_backward_float64,
    torch.bfloat16: _lib.silu_backward_bfloat16,
}


class _SiLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        _FORWARD[x.dtype](x, y, x.numel())
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        _BACKWARD[x.dtype](grad.contiguous(), x, out, x.numel())
        return out


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.dtype not in _FORWARD or x.device.type != "cpu":
            return F.silu(x)
        return _SiLU.apply(x)
