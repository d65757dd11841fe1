"""
problem: swiglu_trained
policy: custom-only
style: C++ operators for every floating-point type with AT_DISPATCH, tied together for autograd by torch.library.register_autograd.
"""

import torch
from agentforge_cpp import load

load(__file__, "kernel.cpp")


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad):
    return torch.ops.swiglu.swiglu_backward(grad, *ctx.saved_tensors)


@torch.library.register_fake("swiglu::swiglu")
def _(gate, value):
    return torch.empty_like(gate, memory_format=torch.contiguous_format)


torch.library.register_autograd("swiglu::swiglu", _backward, setup_context=_setup)


class ModelNew(torch.nn.Module):
    def forward(self, gate, value):
        return torch.ops.swiglu.swiglu(gate, value)
