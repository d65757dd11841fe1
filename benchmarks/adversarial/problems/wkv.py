"""
op_type: scan
policy: anything-faster
about: The WKV operator of RWKV-4, with a running maximum that keeps exponentials from overflowing.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.decay = torch.nn.Parameter(torch.randn(channels))
        self.first = torch.nn.Parameter(torch.randn(channels))

    def forward(self, k, v):
        w = -torch.exp(self.decay)
        top, below = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0])
        most = torch.full_like(top, -1e38)
        answers = []
        for t in range(k.shape[1]):
            kt, vt = k[:, t], v[:, t]
            m = torch.maximum(most, kt + self.first)
            a, b = torch.exp(most - m), torch.exp(kt + self.first - m)
            answers.append((a * top + b * vt) / (a * below + b))
            m = torch.maximum(most + w, kt)
            a, b = torch.exp(most + w - m), torch.exp(kt - m)
            top, below, most = a * top + b * vt, a * below + b, m
        return torch.stack(answers, 1)


def get_inputs():
    return [torch.randn(4, 96, 256), torch.randn(4, 96, 256)]


def get_init_inputs():
    return [256]
