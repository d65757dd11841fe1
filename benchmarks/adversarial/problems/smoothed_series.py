"""
op_type: convolution
policy: anything-faster
about: Series filtered by the weights of a window, which are given. Draws have a Hann window, as for smoothing. Inputs are finite.
"""

import torch
import torch.nn.functional as F

finite = True


class Model(torch.nn.Module):
    def forward(self, series, window):
        return F.conv1d(series[:, None], window[None, None], padding="same")[:, 0]


def get_inputs():
    window = torch.hann_window(257, periodic=False)
    return [torch.randn(4, 8192), window / window.sum()]


def get_init_inputs():
    return []
