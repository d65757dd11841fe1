"""
problem: suppression
style: Each box is compared with the kept ones only. A NaN in a box makes its overlaps NaN, so it neither goes nor makes others go.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, corners, sizes, scores):
        if corners.shape != sizes.shape or corners.shape != (len(scores), 2):
            raise ValueError("boxes have two corners, two sizes and a score")
        order = torch.argsort(scores, descending=True, stable=True)
        low = corners[order].contiguous()
        high = low + sizes[order]
        keep = torch.empty(len(order), dtype=torch.bool)
        lib.suppress(low, high, order, keep, len(order))
        return keep
