"""
problem: cross_entropy
policy: anything-faster
style: logsumexp less the gathered logit
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, targets):
        picked = logits.gather(1, targets[:, None]).squeeze(1)
        return (torch.logsumexp(logits, dim=1) - picked).mean()
