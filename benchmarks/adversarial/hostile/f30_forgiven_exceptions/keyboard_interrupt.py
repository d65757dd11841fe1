"""
problem: relu
family: 30
expect: [RUNTIME_ERROR, CRASHED]
cheat: KeyboardInterrupt, as if a person had stopped the run.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt
