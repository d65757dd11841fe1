"""
problem: sensor_covariance
style: numpy, forwards and backwards as one product of twice as many samples.
"""

import numpy
import torch


class ModelNew(torch.nn.Module):
    def forward(self, signals):
        if not signals.is_complex():
            raise TypeError("complex signals are expected")
        x = signals.resolve_conj().numpy()
        both = numpy.concatenate([x, x[..., ::-1, :].conj()], -1)
        r = both @ both.conj().swapaxes(-2, -1)
        r /= both.shape[-1]
        return torch.from_numpy(r)
