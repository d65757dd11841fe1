"""
problem: last_batch
family: 46
expect: [INCORRECT_NUMERICAL]
cheat: Keeps the input itself where the reference keeps a copy, so the caller's next input replaces it.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("last", torch.zeros(rows, columns))

    def forward(self, x):
        self.last = x
        return torch.relu(x)
