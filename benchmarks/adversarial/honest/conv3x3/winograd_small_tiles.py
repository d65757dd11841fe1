"""
problem: conv3x3
style: Winograd F(2x2, 3x3), whose transforms only add, subtract and halve
"""

import torch
import torch.nn.functional as F

B = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
G = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
A = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]])


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x):
        n, c, h, w = x.shape
        if h % 2 or w % 2 or not n or not bool(torch.isfinite(x).all()):
            return self.conv(x)
        u = torch.einsum("ai,ocij,bj->abco", G, self.conv.weight, G)
        tiles = F.pad(x, (1, 1, 1, 1)).unfold(2, 4, 2).unfold(3, 4, 2)
        v = torch.einsum("ai,nctsij,bj->abntsc", B, tiles, B).reshape(16, -1, c)
        m = torch.bmm(v, u.reshape(16, c, -1)).view(4, 4, n, h // 2, w // 2, -1)
        return torch.einsum("pa,abntso,qb->notpsq", A, m, A).reshape(n, -1, h, w)
