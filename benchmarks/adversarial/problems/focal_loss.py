"""
op_type: loss
policy: anything-faster
about: The focal loss of a detector for each anchor and class, and its gradient.
"""

import torch
import torch.nn.functional as F

differentiable = True
finite = True


class Model(torch.nn.Module):
    def forward(self, logits, is_object):
        target = is_object.to(logits.dtype)
        p = torch.sigmoid(logits)
        entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        right = p * target + (1 - p) * (1 - target)
        return (0.25 * target + 0.75 * (1 - target)) * entropy * (1 - right) ** 2


def get_inputs():
    return [torch.randn(2000, 80), torch.rand(2000, 80) < 0.3]


def get_init_inputs():
    return []
