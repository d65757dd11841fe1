"""
problem: half_softmax
style: One wide copy, which is scaled, masked and exponentiated in place, divided, and rounded once.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, scores, mask):
        scores, mask = torch.broadcast_tensors(scores, mask)
        wide = scores.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
        wide.mul_(0.125).masked_fill_(mask.logical_not(), -torch.inf)
        wide.sub_(wide.amax(-1, keepdim=True)).exp_()
        wide.div_(wide.sum(-1, keepdim=True))
        return torch.empty_like(wide, dtype=torch.float16).copy_(wide)
