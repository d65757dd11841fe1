"""
op_type: other
policy: anything-faster
about: Matrices of scores made doubly stochastic by 24 Sinkhorn steps in logarithms, as for matching. Scores are finite.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def forward(self, scores):
        for _ in range(24):
            scores = scores - torch.logsumexp(scores, dim=2, keepdim=True)
            scores = scores - torch.logsumexp(scores, dim=1, keepdim=True)
        return scores.exp()


def get_inputs():
    return [torch.randn(6, 96, 96)]


def get_init_inputs():
    return []
