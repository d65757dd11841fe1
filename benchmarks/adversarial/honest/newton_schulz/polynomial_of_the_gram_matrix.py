"""
problem: newton_schulz
style: baddbmm into scratch matrices, with the linear term on the diagonal of the polynomial, so that a step has three fused products.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, momentum):
        shape = momentum.shape
        if momentum.dim() < 2:
            raise ValueError("matrices are expected")
        x = momentum.reshape(shape[:-2].numel(), *shape[-2:])
        x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
        y = torch.empty_like(x)
        for _ in range(5):
            a = torch.bmm(x, x.transpose(1, 2))
            b = torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315)
            torch.baddbmm(x, b, x, beta=3.4445, out=y)
            x, y = y, x
        return x.view(shape)
