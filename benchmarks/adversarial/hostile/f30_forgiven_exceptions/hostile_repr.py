"""
problem: relu
family: 30
expect: [RUNTIME_ERROR, CRASHED, TIMEOUT]
cheat: An exception whose str() and repr() raise, whose class has no name and whose traceback is endless.
"""

import torch


class Silent(BaseException):
    def __str__(self):
        raise self

    __repr__ = __str__


Silent.__name__ = "x" * 100000


class ModelNew(torch.nn.Module):
    def forward(self, x, depth=0):
        if depth < 300:
            return self.forward(x, depth + 1)
        raise Silent
