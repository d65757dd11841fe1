"""
problem: targets_and_places
style: The places are a view of the input, as the reference's are; the targets are new memory.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, classes, smoothing):
        super().__init__()
        self.classes = classes
        self.smoothing = smoothing

    def forward(self, ids):
        places = ids.view(-1, 1)
        rest = self.smoothing / self.classes
        targets = torch.empty(ids.shape[0], self.classes).fill_(rest)
        return places, targets.scatter_(1, places, 1.0 - self.smoothing + rest)
