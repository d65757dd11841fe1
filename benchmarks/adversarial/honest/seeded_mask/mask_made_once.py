"""
problem: seeded_mask
style: The mask depends on the shape alone, so it is made once for each.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._masks: dict[tuple[int, ...], torch.Tensor] = {}

    def forward(self, x):
        shape = tuple(x.shape)
        if shape not in self._masks:
            generator = torch.Generator().manual_seed(1234)
            self._masks[shape] = (torch.rand(shape, generator=generator) < 0.8).to(x.dtype)
        return (x * self._masks[shape]).div_(0.8)
