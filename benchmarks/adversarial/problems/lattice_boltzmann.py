"""
op_type: stencil
policy: anything-faster
about: One step of a lattice Boltzmann fluid (D2Q9) on a torus, collision and then streaming.
"""

import torch

DIRECTIONS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
WEIGHTS = (4 / 9,) + (1 / 9,) * 4 + (1 / 36,) * 4


class Model(torch.nn.Module):
    def forward(self, f, omega):
        density = f.sum(0)
        vx = sum(c[0] * f[i] for i, c in enumerate(DIRECTIONS)) / density
        vy = sum(c[1] * f[i] for i, c in enumerate(DIRECTIONS)) / density
        energy = 1.5 * (vx * vx + vy * vy)
        moved = []
        for i, (cx, cy) in enumerate(DIRECTIONS):
            along = 3 * (cx * vx + cy * vy)
            rest = WEIGHTS[i] * density * (1 + along + 0.5 * along * along - energy)
            moved.append(torch.roll(f[i] + omega * (rest - f[i]), (cy, cx), (0, 1)))
        return torch.stack(moved)


def get_inputs():
    weights = torch.tensor(WEIGHTS).view(9, 1, 1)
    return [weights * (0.8 + 0.4 * torch.rand(9, 192, 256)), 0.5 + torch.rand(())]


def get_init_inputs():
    return []
