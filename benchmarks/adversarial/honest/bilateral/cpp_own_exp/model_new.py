"""
problem: bilateral
style: One pass over a padded copy, with an exponential of its own that is good to two units in the last place.
"""

import torch
import torch.nn.functional as F
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, image):
        padded = F.pad(image[:, None], (2, 2, 2, 2), mode="reflect").contiguous()
        out = torch.empty(image.shape)
        lib.smooth(padded, out, *image.shape)
        return out
