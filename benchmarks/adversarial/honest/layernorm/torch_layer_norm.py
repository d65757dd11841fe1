"""
problem: layernorm
policy: anything-faster
style: the torch operator itself, where anything is allowed
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = torch.nn.LayerNorm(features)
        torch.nn.init.normal_(self.norm.weight, 1.0, 0.2)
        torch.nn.init.normal_(self.norm.bias, 0.0, 0.2)

    def forward(self, x):
        return torch.nn.functional.layer_norm(x, self.norm.normalized_shape, self.norm.weight, self.norm.bias)
