"""
op_type: norm
policy: anything-faster
about: Batch norm in training whose moments are the plain mean over all batches so far (momentum=None), so each call changes the buffers by another share.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(width, momentum=None)

    def forward(self, x):
        n = self.norm
        if x.dim() != 2:
            raise ValueError("rows of features are expected")
        n.num_batches_tracked.add_(1)
        share = 1.0 / float(n.num_batches_tracked)
        return F.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias, True, share, n.eps)


def get_inputs():
    return [torch.randn(2048, 256) * 2 + 1]


def get_init_inputs():
    return [256]
