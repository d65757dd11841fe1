"""
op_type: conv
policy: anything-faster
about: Correlation of long sounds with long templates, at every place where the template fits. Sounds are finite.
"""

import torch
import torch.nn.functional as F

finite = True


class Model(torch.nn.Module):
    def forward(self, sounds, templates):
        return F.conv1d(sounds[:, None], templates[:, None])


def get_inputs():
    return [torch.randn(4, 8000), torch.randn(8, 1000)]


def get_init_inputs():
    return []
