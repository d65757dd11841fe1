"""
op_type: other
policy: anything-faster
about: Rows with a single one, 3 MiB, in a call of about a third of a millisecond.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, ids):
        rows = torch.zeros(ids.shape[0], self.classes)
        return rows.scatter_(1, ids.unsqueeze(1), 1.0)


def get_inputs():
    return [torch.randint(0, 1024, (768,))]


def get_init_inputs():
    return [1024]
