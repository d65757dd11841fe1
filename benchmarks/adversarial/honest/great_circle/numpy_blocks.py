"""
problem: great_circle
style: numpy, 64 places at a time, with cosines taken once for each place.
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        if a.dtype != torch.float64 or b.dtype != torch.float64 or a.shape[1] < 2 or b.shape[1] < 2:
            raise ValueError("places in double precision are expected")
        with np.errstate(invalid="ignore"):
            p, q = np.deg2rad(a.numpy()[:, :2]), np.deg2rad(b.numpy()[:, :2])
            out = np.empty((len(p), len(q)))
            shrink = np.cos(q[:, 0])
            for begin in range(0, len(p), 64):
                part = p[begin : begin + 64]
                h = np.square(np.sin((q[:, 1] - part[:, 1:]) * 0.5))
                h *= np.cos(part[:, :1]) * shrink
                h += np.square(np.sin((q[:, 0] - part[:, :1]) * 0.5))
                np.clip(h, 0, 1, out=h)
                np.arcsin(np.sqrt(h, out=h), out=h)
                np.multiply(h, 2 * 6371.0088, out=out[begin : begin + 64])
        return torch.from_numpy(out)
