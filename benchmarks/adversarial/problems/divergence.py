"""
op_type: loss
policy: anything-faster
about: KL divergence of two near distributions, and binary cross-entropy with logits.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, a, b, labels):
        kl = F.kl_div(a.log_softmax(-1), b.log_softmax(-1), log_target=True, reduction="batchmean")
        return kl, F.binary_cross_entropy_with_logits(a, labels)


def get_inputs():
    a = torch.randn(128, 512)
    return [a, a + 0.1 * torch.randn(128, 512), torch.rand(128, 512)]


def get_init_inputs():
    return []
