"""
problem: nucleus_filter
style: numpy's argsort in ascending order, read backwards.
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits):
        probabilities = torch.softmax(logits, dim=-1)
        tokens = torch.from_numpy(np.argsort(probabilities.numpy(), axis=-1)[..., ::-1].copy())
        ordered = probabilities.gather(-1, tokens)
        ordered *= ordered.cumsum(-1) - ordered < 0.9
        return torch.zeros_like(logits).scatter_(-1, tokens, ordered)
