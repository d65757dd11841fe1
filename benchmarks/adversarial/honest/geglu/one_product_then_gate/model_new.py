"""
problem: geglu
style: One product for gate and values, whose weights are joined in the constructor and again when a state is loaded; then an own kernel for gate and product, and torch's linear.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.hidden = hidden
        self.register_buffer("joined", None, persistent=False)
        self._join()
        self.register_load_state_dict_post_hook(lambda module, keys: module._join())

    @torch.no_grad()
    def _join(self):
        self.joined = torch.cat([self.gate.weight, self.up.weight])

    @torch.no_grad()
    def forward(self, x):
        both = F.linear(x, self.joined)
        rows = both.numel() // both.shape[-1]
        mixed = both.new_empty(*both.shape[:-1], self.hidden)
        if rows:
            lib.gelu_gate(both, mixed, rows, self.hidden)
        return F.linear(mixed, self.down.weight)
