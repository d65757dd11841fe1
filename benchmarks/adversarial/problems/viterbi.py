"""
op_type: dynamic_programming
policy: anything-faster
about: The best path through a chain of labels, and its score. Of equal ways the first one is taken, as torch.max documents.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.transitions = torch.nn.Parameter(torch.randn(labels, labels))

    def forward(self, emissions):
        score, froms = emissions[:, 0], []
        for t in range(1, emissions.shape[1]):
            best, places = (score[:, :, None] + self.transitions).max(1)
            score = best + emissions[:, t]
            froms.append(places)
        best, label = score.max(1)
        path = [label]
        for places in reversed(froms):
            path.append(places.gather(1, path[-1][:, None])[:, 0])
        return torch.stack(path[::-1], 1), best


def get_inputs():
    return [torch.randn(32, 48, 24)]


def get_init_inputs():
    return [24]
