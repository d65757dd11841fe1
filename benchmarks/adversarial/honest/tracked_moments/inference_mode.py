"""
problem: tracked_moments
style: forward runs in inference mode, and the moments become new tensors.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    @torch.inference_mode()
    def forward(self, x):
        var, mean = torch.var_mean(x, dim=0, unbiased=False)
        self.running_mean = torch.lerp(self.running_mean, mean, 0.1)
        self.running_var = torch.lerp(self.running_var, var, 0.1)
        return (x - mean).mul_(torch.rsqrt(var + 1e-5))
