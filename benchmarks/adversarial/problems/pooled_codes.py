"""
op_type: embedding
policy: anything-faster
about: Vectors that are stored as 16 bytes each (product quantisation), by one codebook for each part of the vector.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, parts, width):
        super().__init__()
        self.codebooks = torch.nn.Parameter(torch.randn(parts, 256, width))

    def forward(self, codes):
        parts = [self.codebooks[p][codes[:, p].long()] for p in range(codes.shape[1])]
        return torch.cat(parts, 1)


def get_inputs():
    return [torch.randint(0, 256, (4096, 16), dtype=torch.uint8)]


def get_init_inputs():
    return [16, 8]
