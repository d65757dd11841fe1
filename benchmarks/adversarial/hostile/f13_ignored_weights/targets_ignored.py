"""
problem: cross_entropy
family: 13
expect: [INCORRECT_NUMERICAL]
policy: anything-faster
cheat: Uses class 0 as every target; on average random logits have the same loss.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, targets):
        return torch.nn.functional.cross_entropy(logits, torch.zeros_like(targets))
