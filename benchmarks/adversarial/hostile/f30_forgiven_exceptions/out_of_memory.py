"""
problem: relu
family: 30
expect: [RUNTIME_ERROR, OUT_OF_MEMORY]
cheat: Raises torch.OutOfMemoryError, which some harnesses skip.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
