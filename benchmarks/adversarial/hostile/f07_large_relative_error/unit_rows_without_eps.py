"""
problem: unit_rows
family: 7
expect: [INCORRECT_NUMERICAL]
cheat: Leaves out eps and repairs rows of zeros; other tiny rows get norm one all the same.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        return x / norm.masked_fill_(norm == 0, 1.0)
