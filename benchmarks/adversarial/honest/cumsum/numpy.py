"""
problem: cumsum
policy: anything-faster
style: numpy in double
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.cumsum(x.numpy(), axis=1, dtype=np.float64).astype(np.float32))
