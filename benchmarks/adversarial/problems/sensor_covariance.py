"""
op_type: matmul
policy: anything-faster
about: Covariances of the complex signals of a line of sensors, averaged forwards and backwards, as for finding directions. Signals are finite.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def forward(self, signals):
        r = signals @ signals.mH / signals.shape[-1]
        return (r + r.conj().flip(-2, -1)) / 2


def get_inputs():
    return [torch.randn(96, 24, 256, dtype=torch.complex64)]


def get_init_inputs():
    return []
