"""
problem: one_sequence
style: a dot product by parts
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        parts = x.reshape(x.shape[0], -1, x.shape[-1])
        return torch.linalg.vector_norm(parts, dim=-1).square_().sum() / x.numel()
