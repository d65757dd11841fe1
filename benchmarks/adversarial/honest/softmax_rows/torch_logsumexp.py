"""
problem: softmax_rows
policy: anything-faster
style: a different formula: exp(x - logsumexp)
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.exp(torch.log_softmax(x, dim=-1))
