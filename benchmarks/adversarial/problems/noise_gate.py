"""
op_type: scan
policy: anything-faster
about: A noise gate with hysteresis. It opens above 1, closes below 0.25 and keeps its state in between.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, sound):
        level = sound.abs()
        steps = torch.arange(1, sound.shape[1] + 1)
        decided = torch.where((level > 1.0) | (level < 0.25), steps, 0).cummax(1).values
        state = torch.nn.functional.pad(level > 1.0, (1, 0))
        return torch.where(state.gather(1, decided), sound, 0.0)


def get_inputs():
    return [torch.randn(8, 48000)]


def get_init_inputs():
    return []
