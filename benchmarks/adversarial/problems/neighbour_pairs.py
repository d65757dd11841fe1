"""
op_type: other
policy: anything-faster
about: All pairs of points on a grid that are at most 20 apart, the lower number first, and their distances. Their number differs from call to call.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, points):
        wide = points.long()
        squares = (wide[:, None] - wide[None]).square().sum(-1)
        first, second = (squares <= 400).triu(1).nonzero(as_tuple=True)
        return torch.stack([first, second]), squares[first, second].float().sqrt()


def get_inputs():
    return [torch.randint(0, 200, (640, 3), dtype=torch.int16)]


def get_init_inputs():
    return []
