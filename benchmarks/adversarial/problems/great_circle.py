"""
op_type: pointwise
policy: anything-faster
about: Distances in kilometres between two sets of places on the earth by the haversine formula, in double precision.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        a, b = torch.deg2rad(a), torch.deg2rad(b)
        lat1, lon1 = a[:, None, 0], a[:, None, 1]
        lat2, lon2 = b[None, :, 0], b[None, :, 1]
        h = torch.sin((lat2 - lat1) / 2) ** 2 + torch.cos(lat1) * torch.cos(lat2) * torch.sin((lon2 - lon1) / 2) ** 2
        return 2 * 6371.0088 * torch.asin(torch.sqrt(h.clamp(0, 1)))


def places(n):
    latitude, longitude = torch.rand(2, n, dtype=torch.float64)
    return torch.stack([latitude * 170 - 85, longitude * 360 - 180], 1)


def get_inputs():
    return [places(300), places(250)]


def get_init_inputs():
    return []
