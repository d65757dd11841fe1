"""
problem: relu
family: 27
expect: [CRASHED, RUNTIME_ERROR, CHEATING]
cheat: SystemExit(0) in the constructor.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        raise SystemExit(0)
