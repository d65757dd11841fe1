"""
op_type: pointwise
policy: anything-faster
about: The sigmoid of 8-bit integers with a scale and a zero point, quantised again, as in an int8 network.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.0471))
        self.register_buffer("zero", torch.tensor(3, dtype=torch.int32))

    def forward(self, x):
        y = torch.sigmoid((x.float() - self.zero) * self.scale)
        return (torch.round(y * 256) - 128).clamp(-128, 127).to(torch.int8)


def get_inputs():
    return [torch.randint(-128, 128, (512, 1024), dtype=torch.int8)]


def get_init_inputs():
    return []
