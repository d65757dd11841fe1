"""
problem: tracked_motion
style: Covariances do not depend on what is measured, so all series share them and the gains, which are Python numbers. States are two vectors, in place.
"""

import torch


def covariances(steps, drift, noise):
    """The gains of each step, and the last covariance."""
    a, b, c, d = 10.0, 0.0, 0.0, 10.0
    gains = []
    for _ in range(steps):
        a, b, c, d = a + b + c + d + drift * 0.25, b + d + drift * 0.5, c + d + drift * 0.5, d + drift
        g, h = a / (a + noise), c / (a + noise)
        gains.append((g, h))
        a, b, c, d = a - g * a, b - g * b, c - h * a, d - h * b
    return gains, [[a, b], [c, d]]


class ModelNew(torch.nn.Module):
    def __init__(self, drift, noise):
        super().__init__()
        self.drift, self.noise = drift, noise

    def forward(self, measured):
        n, steps = measured.shape
        if steps == 0:
            raise ValueError("no steps")
        gains, cov = covariances(steps, self.drift, self.noise)
        columns = measured.t().contiguous()
        place, speed = measured.new_zeros(n), measured.new_zeros(n)
        out = torch.empty_like(columns)
        for t, (g, h) in enumerate(gains):
            place.add_(speed)
            apart = columns[t] - place
            place.add_(apart, alpha=g)
            speed.add_(apart, alpha=h)
            out[t] = place
        return out.t().contiguous(), torch.tensor(cov, dtype=torch.float64).repeat(n, 1, 1)
