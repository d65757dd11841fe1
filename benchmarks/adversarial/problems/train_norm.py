"""
op_type: norm
policy: anything-faster
about: Batch norm of images by the moments of the batch, which are tracked, and the number of batches, as in training.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels, momentum=0.05)

    def forward(self, x):
        n = self.norm
        n.num_batches_tracked.add_(1)
        y = F.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias, True, n.momentum, n.eps)
        return F.relu(y)


def get_inputs():
    return [torch.randn(8, 32, 48, 48)]


def get_init_inputs():
    return [32]
