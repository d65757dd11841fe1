"""
problem: relu
family: 41
expect: [TIMEOUT]
cheat: Ignores every signal it can and loops.
"""

import signal
import time

import torch

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        end = time.time() + 300
        while time.time() < end:
            pass
        return torch.relu(x)
