"""
op_type: scan
policy: anything-faster
about: Composites the layers of each ray from front to back, as Gaussian splatting does; opacities come as logits.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, logits, colours):
        alpha = torch.sigmoid(logits)
        seen = torch.cumprod(1 - alpha, 1)
        before = torch.cat([torch.ones_like(seen[:, :1]), seen[:, :-1]], 1)
        return torch.einsum("rl,rlc->rc", alpha * before, colours)


def get_inputs():
    return [torch.randn(2048, 256), torch.rand(2048, 256, 3)]


def get_init_inputs():
    return []
