"""
problem: cumulative_norm
style: Moments by hand from the centred rows, which become the answer in place, and buffers in place. It counts its calls for whoever debugs it, and nothing depends on that.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(width, momentum=None)
        self.calls = 0

    @torch.no_grad()
    def forward(self, x):
        n, rows = self.norm, len(x)
        if x.dim() != 2 or rows < 2:
            raise ValueError("at least two rows of features are expected")
        self.calls += 1
        n.num_batches_tracked.add_(1)
        share = 1.0 / float(n.num_batches_tracked)
        mean = x.mean(0)
        y = x.contiguous() - mean
        var = y.square().mean(0)
        n.running_mean.mul_(1 - share).add_(mean, alpha=share)
        n.running_var.mul_(1 - share).add_(var, alpha=share * rows / (rows - 1))
        return y.mul_(torch.rsqrt(var + n.eps).mul_(n.weight)).add_(n.bias)
