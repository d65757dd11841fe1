"""
op_type: recurrent
policy: anything-faster
about: A recurrent layer with tanh that reads sequences in both directions, with or without a state to begin with.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, width):
        super().__init__()
        self.rnn = torch.nn.RNN(inner, width, batch_first=True, bidirectional=True)

    def forward(self, x, state=None):
        if x.dim() != 3:
            raise ValueError("a batch of sequences is expected")
        return self.rnn(x, state)


def get_inputs():
    return [torch.randn(16, 80, 48)]


def get_init_inputs():
    return [48, 64]
