"""
problem: swiglu_trained
style: Two operators of torch.library in Python, the backward pass registered for the first one, as a library would that supports torch.compile.
"""

import torch


def _wide(t):
    return t.float() if t.dtype in (torch.bfloat16, torch.float16) else t


@torch.library.custom_op("swiglu::forward", mutates_args=())
def swiglu(gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(gate) * value


@torch.library.custom_op("swiglu::backward", mutates_args=())
def swiglu_backward(
    grad: torch.Tensor, gate: torch.Tensor, value: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    g, x, v = _wide(grad), _wide(gate), _wide(value)
    s = torch.sigmoid(x)
    into_gate = g * v * (s * (1 + x * (1 - s)))
    return into_gate.to(gate.dtype), (g * (x * s)).to(value.dtype)


@swiglu.register_fake
def _(gate, value):
    return torch.empty_like(gate)


@swiglu_backward.register_fake
def _(grad, gate, value):
    return torch.empty_like(gate), torch.empty_like(value)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


swiglu.register_autograd(lambda ctx, grad: swiglu_backward(grad, *ctx.saved_tensors), setup_context=_keep)


class ModelNew(torch.nn.Module):
    def forward(self, gate, value):
        return swiglu(gate, value)
