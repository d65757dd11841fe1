"""
op_type: other
policy: anything-faster
about: Targets with label smoothing, and beside them the places of the labels, which are a view of the input.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, classes, smoothing):
        super().__init__()
        self.classes = classes
        self.smoothing = smoothing

    def forward(self, ids):
        places = ids.unsqueeze(1)
        rest = self.smoothing / self.classes
        targets = torch.full((ids.shape[0], self.classes), rest)
        return places, targets.scatter_(1, places, 1.0 - self.smoothing + rest)


def get_inputs():
    return [torch.randint(0, 32768, (64,))]


def get_init_inputs():
    return [32768, 0.1]
