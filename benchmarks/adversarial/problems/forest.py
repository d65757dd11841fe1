"""
op_type: other
policy: anything-faster
about: The mean of 64 decision trees of six levels.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, features, trees, depth):
        super().__init__()
        self.depth = depth
        self.register_buffer("features", torch.randint(0, features, (trees, 2**depth - 1)))
        self.thresholds = torch.nn.Parameter(torch.randn(trees, 2**depth - 1))
        self.leaves = torch.nn.Parameter(torch.randn(trees, 2**depth))

    def forward(self, x):
        trees = torch.arange(len(self.features))
        node = torch.zeros(len(x), len(trees), dtype=torch.int64)
        for _ in range(self.depth):
            value = x.gather(1, self.features[trees, node])
            node = 2 * node + 1 + (value > self.thresholds[trees, node])
        return self.leaves[trees, node - (2**self.depth - 1)].mean(1)


def get_inputs():
    return [torch.randn(2048, 40)]


def get_init_inputs():
    return [40, 64, 6]
