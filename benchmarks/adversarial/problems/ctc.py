"""
op_type: loss
policy: anything-faster
about: CTC loss of each sequence, with the lengths of inputs and targets. Label 0 is the blank.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, logits, targets, input_lengths, target_lengths):
        log_probs = torch.log_softmax(logits, dim=-1)
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, reduction="none")


def get_inputs():
    logits, targets = torch.randn(48, 24, 32), torch.randint(1, 32, (24, 10))
    return [logits, targets, torch.randint(24, 49, (24,)), torch.randint(1, 11, (24,))]


def get_init_inputs():
    return []
