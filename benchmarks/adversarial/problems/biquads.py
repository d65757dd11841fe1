"""
op_type: scan
policy: anything-faster
about: An equaliser for sound, three recursive filters of second order one after the other.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        sections = [[0.9, -1.2, 0.5, -1.3, 0.6], [1.1, 0.3, 0.2, 0.4, 0.3], [0.7, -0.5, 0.1, -0.8, 0.25]]
        self.register_buffer("sections", torch.tensor(sections))

    def forward(self, x):
        for b0, b1, b2, a1, a2 in self.sections:
            s1 = s2 = torch.zeros_like(x[:, 0])
            out = []
            for u in x.unbind(1):
                y = b0 * u + s1
                s1 = b1 * u - a1 * y + s2
                s2 = b2 * u - a2 * y
                out.append(y)
            x = torch.stack(out, 1)
        return x


def get_inputs():
    return [torch.randn(64, 160)]


def get_init_inputs():
    return []
