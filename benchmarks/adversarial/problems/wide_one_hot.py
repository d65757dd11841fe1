"""
op_type: other
policy: anything-faster
about: Few long rows with a single one; all of the work is to write 16 MiB of zeros.
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
    return [torch.randint(0, 65536, (64,))]


def get_init_inputs():
    return [65536]
