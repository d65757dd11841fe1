"""
op_type: softmax
policy: anything-faster
about: Pools the steps of sequences by learned scores. Mask, bias and temperature may be left out, and the weights are given if asked for.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = torch.nn.Parameter(torch.randn(width) * width**-0.5)

    def forward(self, x, mask=None, bias=None, *, temperature=1.0, weights=False):
        scores = x @ self.query
        if bias is not None:
            scores = scores + bias
        scores = scores / temperature
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e30)
        shares = scores.softmax(-1)
        pooled = (shares[..., None] * x).sum(-2)
        return (pooled, shares) if weights else pooled


def get_inputs():
    mask = torch.rand(128, 128) < 0.8
    return {"x": torch.randn(128, 128, 128), "mask": mask, "temperature": 0.5, "weights": True}


def get_init_inputs():
    return [128]
