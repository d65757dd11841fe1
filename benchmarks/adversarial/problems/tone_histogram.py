"""
op_type: reduction
policy: anything-faster
about: Histogram of the tones of images, which lie between 0 and 1, both included, in 256 bins. The last bin includes 1, as torch documents.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, tones):
        return torch.histc(tones, bins=256, min=0.0, max=1.0)


def get_inputs():
    return [torch.rand(8, 3, 160, 160)]


def get_init_inputs():
    return []
