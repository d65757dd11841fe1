"""
problem: weighted_bins
style: A registered operator that begins with at::zeros for the bins of each thread and checks its indices with TORCH_CHECK_INDEX inside at::parallel_for.
"""

import torch
from agentforge_cpp import load

load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, places, weights):
        return torch.ops.bins.weighted_bins(places, weights, self.bins)
