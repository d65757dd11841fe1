"""
problem: train_norm
style: Centres first, takes the variance from the lengths of the centred images, and goes on in place on its own tensor. The tracked variance is unbiased.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels, momentum=0.05)

    @torch.no_grad()
    def forward(self, x):
        n = self.norm
        count = x.numel() // max(x.shape[1], 1)
        if count < 2:
            raise ValueError("more than one value for each channel is expected")
        n.num_batches_tracked.add_(1)
        mean = x.flatten(2).mean(2).mean(0)
        y = x - mean[:, None, None]
        var = torch.linalg.vector_norm(y.flatten(2), dim=2).square_().sum(0).div_(count)
        n.running_mean.mul_(1 - n.momentum).add_(mean, alpha=n.momentum)
        n.running_var.mul_(1 - n.momentum).add_(var, alpha=n.momentum * count / (count - 1))
        scale = n.weight * torch.rsqrt(var + n.eps)
        return y.mul_(scale[:, None, None]).add_(n.bias[:, None, None]).relu_()
