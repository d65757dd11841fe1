"""
problem: softcap_logits
policy: anything-faster
style: The kernel registers itself with TORCH_LIBRARY when its library is loaded, and is called by torch.ops.
"""

import torch
from agentforge_cpp import load

load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, cap):
        super().__init__()
        self.cap = cap

    def forward(self, logits):
        return torch.ops.registered.softcap(logits, self.cap)
