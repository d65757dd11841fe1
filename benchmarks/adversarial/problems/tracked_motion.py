"""
op_type: scan
policy: anything-faster
about: Kalman filters of place and speed for many series of measured places, in double precision. Gives the filtered places and the last covariances.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, drift, noise):
        super().__init__()
        self.drift, self.noise = drift, noise

    def forward(self, measured):
        n, steps = measured.shape
        move = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
        extra = self.drift * torch.tensor([[0.25, 0.5], [0.5, 1.0]], dtype=torch.float64)
        state = torch.zeros(n, 2, 1, dtype=torch.float64)
        cov = 10 * torch.eye(2, dtype=torch.float64).repeat(n, 1, 1)
        places = []
        for t in range(steps):
            state = move @ state
            cov = move @ cov @ move.t() + extra
            gain = cov[:, :, :1] / (cov[:, :1, :1] + self.noise)
            state = state + gain * (measured[:, t].view(n, 1, 1) - state[:, :1])
            cov = cov - gain * cov[:, :1]
            places.append(state[:, 0, 0])
        return torch.stack(places, 1), cov


def get_inputs():
    return [torch.randn(1024, 48, dtype=torch.float64).cumsum(1)]


def get_init_inputs():
    return [0.05, 1.0]
