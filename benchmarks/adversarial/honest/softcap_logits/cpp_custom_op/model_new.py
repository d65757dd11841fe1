"""
problem: softcap_logits
style: The kernel is a custom operator of torch.library, so that torch.compile and export can see it.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


@torch.library.custom_op("softcap::softcap", mutates_args=())
def softcap(logits: torch.Tensor, cap: float) -> torch.Tensor:
    logits = logits.contiguous()
    out = torch.empty_like(logits)
    lib.softcap(logits, out, logits.numel(), cap)
    return out


@softcap.register_fake
def _(logits, cap):
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


class ModelNew(torch.nn.Module):
    def __init__(self, cap):
        super().__init__()
        self.cap = cap

    def forward(self, logits):
        return softcap(logits, self.cap)
