"""
op_type: attention
policy: anything-faster
about: Adds a bias to attention scores that depends on the distance of two positions, clamped to 32 either way, as of Shaw et al.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, heads, most):
        super().__init__()
        self.most = most
        self.table = torch.nn.Embedding(2 * most + 1, heads)

    def forward(self, scores, positions):
        distance = positions[:, None, :] - positions[:, :, None]
        near = distance.clamp(-self.most, self.most) + self.most
        return scores + self.table(near).permute(0, 3, 1, 2)


def get_inputs():
    return [torch.randn(4, 8, 96, 96), torch.randint(0, 512, (4, 96))]


def get_init_inputs():
    return [8, 32]
