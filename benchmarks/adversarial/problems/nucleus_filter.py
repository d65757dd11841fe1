"""
op_type: other
policy: anything-faster
about: Keeps the most probable tokens that reach 90 percent together, as for nucleus sampling, and zeros the others.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, logits):
        probabilities, tokens = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
        keep = probabilities.cumsum(-1) - probabilities < 0.9
        return torch.zeros_like(logits).scatter(-1, tokens, probabilities * keep)


def get_inputs():
    return [2 * torch.randn(128, 1024)]


def get_init_inputs():
    return []
