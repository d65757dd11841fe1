"""
op_type: scan
policy: anything-faster
about: An exponential moving average along time, with the share of a new value as an argument.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, share):
        average = x[:, 0]
        found = [average]
        for t in range(1, x.shape[1]):
            average = average + share * (x[:, t] - average)
            found.append(average)
        return torch.stack(found, 1)


def get_inputs():
    return [torch.randn(128, 1024), 0.1]


def get_init_inputs():
    return []
