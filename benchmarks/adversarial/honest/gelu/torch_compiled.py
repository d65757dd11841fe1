"""
problem: gelu
policy: anything-faster
style: torch.compile, where anything faster is allowed, and it says so
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.work = torch.compile(lambda x: torch.nn.functional.gelu(x))

    def forward(self, x):
        return self.work(x)
