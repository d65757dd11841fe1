"""
op_type: normalization
policy: anything-faster
about: A hundred rounds of Sinkhorn on cost matrices in units of their means; gives the transport plans.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, cost):
        cost = cost.abs()
        kernel = torch.exp(cost / cost.mean((1, 2), keepdim=True).clamp(min=1e-6) * -8.0) + 1e-12
        left = torch.ones_like(cost[:, :, :1])
        for _ in range(100):
            right = 1.0 / (left.mT @ kernel)
            left = cost.shape[2] / cost.shape[1] / (kernel @ right.mT)
        return left * kernel * right


def get_inputs():
    return [torch.rand(8, 128, 128)]


def get_init_inputs():
    return []
