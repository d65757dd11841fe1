"""
op_type: recurrent
policy: anything-faster
about: A GRU over sequences, from a given state.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, hidden):
        super().__init__()
        self.gru = torch.nn.GRU(inner, hidden, batch_first=True)

    def forward(self, x, h):
        return self.gru(x, h)


def get_inputs():
    return [torch.randn(32, 40, 64), torch.randn(1, 32, 96)]


def get_init_inputs():
    return [64, 96]
