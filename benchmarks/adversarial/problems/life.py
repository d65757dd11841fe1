"""
op_type: stencil
policy: anything-faster
about: Four generations of Conway's game of life on tori.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, boards):
        for _ in range(4):
            cells = boards.to(torch.uint8)
            near = torch.zeros_like(cells)
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    if dy or dx:
                        near += cells.roll((dy, dx), (1, 2))
            boards = (near == 3) | (boards & (near == 2))
        return boards


def get_inputs():
    return [torch.rand(8, 256, 256) < 0.3]


def get_init_inputs():
    return []
