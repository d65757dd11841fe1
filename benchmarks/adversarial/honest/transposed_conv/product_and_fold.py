"""
problem: transposed_conv
style: One product with the weights packed in the constructor, then the columns folded.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)

    def forward(self, x):
        n, c, h, w = x.shape
        columns = self.up.weight.reshape(c, -1).t() @ x.reshape(n, c, h * w)
        y = F.fold(columns, (2 * h, 2 * w), 4, stride=2, padding=1)
        return y + self.up.bias[:, None, None]
