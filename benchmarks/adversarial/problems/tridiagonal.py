"""
op_type: linear_algebra
policy: anything-faster
about: Many tridiagonal systems whose diagonals dominate, by Thomas' algorithm.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, lower, diagonal, upper, right):
        steps = diagonal.shape[1]
        c = [upper[:, 0] / diagonal[:, 0]]
        d = [right[:, 0] / diagonal[:, 0]]
        for i in range(1, steps):
            pivot = diagonal[:, i] - lower[:, i] * c[-1]
            d.append((right[:, i] - lower[:, i] * d[-1]) / pivot)
            c.append(upper[:, i] / pivot)
        x = [d[-1]]
        for i in reversed(range(steps - 1)):
            x.append(d[i] - c[i] * x[-1])
        return torch.stack(x[::-1], 1)


def get_inputs():
    lower, upper, right = (torch.randn(512, 100) for _ in range(3))
    return [lower, 0.5 + lower.abs() + upper.abs(), upper, right]


def get_init_inputs():
    return []
