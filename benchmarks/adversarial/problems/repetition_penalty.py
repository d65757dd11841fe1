"""
op_type: other
policy: anything-faster
about: Logits of tokens that were seen before are divided by a penalty if positive and multiplied if negative; then a temperature.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, logits, history, penalty=1.3, temperature=0.8):
        seen = logits.gather(1, history)
        seen = torch.where(seen < 0, seen * penalty, seen / penalty)
        return logits.scatter(1, history, seen) / temperature


def get_inputs():
    return [torch.randn(32, 16000) * 4, torch.randint(0, 16000, (32, 512)), 1.3, 0.8]


def get_init_inputs():
    return []
