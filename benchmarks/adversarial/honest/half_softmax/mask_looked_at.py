"""
problem: half_softmax
style: Looks at the mask first; if every place counts nothing is filled, and else in place.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, scores, mask):
        scores, mask = torch.broadcast_tensors(scores, mask)
        wide = scores.float() * 0.125
        if not mask.all():
            wide.masked_fill_(~mask, -torch.inf)
        return wide.softmax(-1).half()
