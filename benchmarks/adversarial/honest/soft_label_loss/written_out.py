"""
problem: soft_label_loss
style: The two logarithms with their bounds.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, probabilities, labels):
        yes = probabilities.log().clamp_(min=-100.0)
        no = torch.log1p(-probabilities).clamp_(min=-100.0)
        return no.mul_(1 - labels).addcmul_(yes, labels).mean(-1).neg_()
