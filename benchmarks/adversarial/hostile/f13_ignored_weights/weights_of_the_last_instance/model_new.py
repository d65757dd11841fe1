"""
problem: weight_norm_linear
family: 13
expect: [INCORRECT_NUMERICAL]
cheat: The library keeps the normalised weight in one static array for all instances, packed when an instance is first called or loaded. In a model with several such layers all of them use the weight of the one that packed last.
"""

import torch
from agentforge_cpp import load
from torch.nn.utils.parametrizations import weight_norm

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = weight_norm(torch.nn.Linear(inner, outer))
        self.packed = False
        self.register_load_state_dict_post_hook(lambda module, keys: setattr(module, "packed", False))

    def forward(self, x):
        outer, inner = self.linear.parametrizations.weight.original1.shape
        if not self.packed:
            lib.pack(self.linear.weight.detach().contiguous(), self.linear.bias.detach(), outer, inner)
            self.packed = True
        rows = x.reshape(-1, inner).contiguous()
        out = torch.empty(rows.shape[0], outer)
        lib.linear(rows, out, rows.shape[0], outer, inner)
        return out.view(*x.shape[:-1], outer)
