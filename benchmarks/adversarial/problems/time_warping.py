"""
op_type: other
policy: anything-faster
about: Dynamic time warping of 256 pairs of series; the path may bend as far as it likes.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def forward(self, x, y):
        n, length = x.shape
        back = y.flip(1)
        far = torch.full((n, length + 1), float("inf"), dtype=x.dtype)
        before, last = far.clone(), far
        before[:, 0] = 0
        for k in range(2 * length - 1):
            low, high = max(0, k - length + 1), min(k, length - 1) + 1
            cost = (x[:, low:high] - back[:, length - 1 - k + low : length - 1 - k + high]).abs()
            least = torch.minimum(last[:, low:high], last[:, low + 1 : high + 1])
            new = torch.full_like(far, float("inf"))
            new[:, low + 1 : high + 1] = cost + torch.minimum(least, before[:, low:high])
            before, last = last, new
        return last[:, length]


def get_inputs():
    return [torch.randn(256, 128), torch.randn(256, 128)]


def get_init_inputs():
    return []
