"""
problem: gated_residual
style: The compiler of torch, which is imported as th.
"""

import torch as th


def _fused(x, gate, branch):
    return x + th.sigmoid(gate) * th.tanh(branch)


class ModelNew(th.nn.Module):
    def __init__(self):
        super().__init__()
        self._fused = th.compile(_fused)

    def forward(self, x, gate, branch):
        return self._fused(x, gate, branch)
