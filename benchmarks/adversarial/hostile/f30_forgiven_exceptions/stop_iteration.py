"""
problem: relu
family: 30
expect: [RUNTIME_ERROR, CRASHED]
cheat: StopIteration and GeneratorExit end a harness's loop quietly.
"""

import torch


class ModelNew(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        raise StopIteration if self.calls % 2 else GeneratorExit
