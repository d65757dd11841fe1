"""
problem: relu
family: 41
expect: [RUNTIME_ERROR, CRASHED, INCORRECT_NUMERICAL, OUT_OF_MEMORY, TIMEOUT]
cheat: Prints 2 GB.
"""

import os

import torch


class ModelNew(torch.nn.Module):
    done = False

    def forward(self, x):
        if not self.done:
            self.done = True
            block = b"PASSED verified\n" * 65536
            for _ in range(2048):
                os.write(1, block)
        return torch.zeros_like(x)
