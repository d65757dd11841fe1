"""
problem: edge_softmax
style: Sorts edges by their ends, so each node is a run for numpy's reduceat. Nodes without edges have no run.
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, scores, ends):
        if not ends.shape[0]:
            return torch.empty_like(scores)
        order = torch.argsort(ends, stable=True)
        _, sizes = torch.unique_consecutive(ends[order], return_counts=True)
        starts = (sizes.cumsum(0) - sizes).numpy()
        e = scores[order].numpy()
        with np.errstate(all="ignore"):
            e -= np.repeat(np.maximum.reduceat(e, starts, axis=0), sizes.numpy(), axis=0)
            np.exp(e, out=e)
            e /= np.repeat(np.add.reduceat(e, starts, axis=0), sizes.numpy(), axis=0)
        out = torch.empty(scores.shape, dtype=scores.dtype)
        out[order] = torch.from_numpy(e)
        return out
