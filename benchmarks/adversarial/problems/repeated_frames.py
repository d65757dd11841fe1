"""
op_type: other
policy: anything-faster
about: Drops frames of features that are equal to the one before them; gives for each frame the number of the frame that is kept.
"""

import torch

fresh_inputs = True


class Model(torch.nn.Module):
    def forward(self, frames):
        new = torch.ones(frames.shape[0], dtype=torch.bool)
        new[1:] = (frames[1:] != frames[:-1]).any(1)
        return new.cumsum(0) - 1


def get_inputs():
    frames = torch.randn(16384, 64)
    again = torch.rand(16383) < 0.4
    frames[1:][again] = frames[:-1][again]
    return [frames]


def get_init_inputs():
    return []
