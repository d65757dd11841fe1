"""
problem: channel_norm
style: torch's layer norm on a view with the channels last. If the image lies otherwise, the answer is copied to lie as it does.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(channels) + 0.5)
        self.bias = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x):
        if x.dim() != 4:
            raise ValueError("a batch of images is expected")
        view = x.permute(0, 2, 3, 1)
        y = torch.nn.functional.layer_norm(view, self.weight.shape, self.weight, self.bias, 1e-6).permute(0, 3, 1, 2)
        out = torch.empty_like(x)
        return y if out.stride() == y.stride() else out.copy_(y)
