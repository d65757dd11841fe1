"""
op_type: pointwise
policy: anything-faster
about: ReLU that observes the range of its inputs, as before quantisation. The answer does not depend on what was observed.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("least", torch.zeros(()))
        self.register_buffer("largest", torch.zeros(()))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.least += 0.1 * (x.min() - self.least)
        self.largest += 0.1 * (x.max() - self.largest)
        self.calls += 1
        return torch.relu(x)


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return []
