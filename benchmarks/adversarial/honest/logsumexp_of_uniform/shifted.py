"""
problem: logsumexp_of_uniform
style: shifted by the maximum, in place
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        most = x.amax(1, keepdim=True).nan_to_num(neginf=0.0, posinf=0.0)
        return (x - most).exp_().sum(1).log_().add_(most.squeeze(1))
