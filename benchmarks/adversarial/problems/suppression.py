"""
op_type: other
policy: anything-faster
about: Greedy non-maximum suppression. A box goes if a box with a higher score that stays overlaps it by more than half.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, corners, sizes, scores):
        order = torch.argsort(scores, descending=True, stable=True)
        low, high = corners[order], corners[order] + sizes[order]
        sides = (torch.minimum(high[:, None], high) - torch.maximum(low[:, None], low)).clamp(min=0)
        inner, area = sides.prod(-1), (high - low).prod(-1)
        over = inner / (area[:, None] + area - inner) > 0.5
        keep = torch.ones(len(order), dtype=torch.bool)
        for i in range(len(order)):
            if keep[i]:
                keep[i + 1 :] &= ~over[i, i + 1 :]
        return torch.zeros_like(keep).scatter(0, order, keep)


def get_inputs():
    return [4 * torch.rand(500, 2), 0.2 + torch.rand(500, 2), torch.rand(500)]


def get_init_inputs():
    return []
