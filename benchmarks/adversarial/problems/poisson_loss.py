"""
op_type: loss
policy: anything-faster
about: Loss of counts by the logarithms of their rates, with Stirling's approximation for counts above 1. Draws have counts from 5 on.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, log_rates, counts):
        return F.poisson_nll_loss(log_rates, counts, log_input=True, full=True, reduction="none").mean(1)


def get_inputs():
    return [torch.randn(512, 1024) + 2, torch.randint(5, 60, (512, 1024)).float()]


def get_init_inputs():
    return []
