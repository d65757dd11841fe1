"""
problem: range_observer
style: Both ends by one pass. Buffers become new tensors, and one more that is not saved counts on the side.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("least", torch.zeros(()))
        self.register_buffer("largest", torch.zeros(()))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("elements", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x):
        least, largest = torch.aminmax(x)
        self.least = torch.lerp(self.least, least, 0.1)
        self.largest = torch.lerp(self.largest, largest, 0.1)
        self.calls = self.calls + 1
        self.elements += x.numel()
        return torch.relu(x)
