"""
op_type: pointwise
policy: custom-only
about: Logits that are bounded softly, as in Gemma 2.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, cap):
        super().__init__()
        self.cap = cap

    def forward(self, logits):
        return self.cap * torch.tanh(logits / self.cap)


def get_inputs():
    return [torch.randn(128, 4096) * 20]


def get_init_inputs():
    return [30.0]
