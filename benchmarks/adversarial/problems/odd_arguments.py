"""
op_type: other
policy: anything-faster
about: Nested arguments by keyword (numbers, nothing, empty and expanded tensors, one without dimensions), and an answer of as many kinds.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, pack, scale, *, nothing=None, options=None):
        (a, (b, places)), times = pack
        y = a * scale + b.float().mean() + places.sum() * times + options["bias"]
        if not options["centre"]:
            y = y - y.mean()
        return {"y": y, "nothing": nothing, "pair": [(y.sum(1), y > 0), torch.empty(0, 3)], "times": times}


def get_inputs():
    numbers = torch.randint(-8, 8, (64,), dtype=torch.int8)
    places = torch.randint(0, 9, (1, 33)).expand(4, 33)
    options = {"bias": torch.randn(600), "centre": True, "more": torch.empty(0)}
    return {"pack": ((torch.randn(600, 600), (numbers, places)), 3), "scale": torch.rand(()), "options": options}


def get_init_inputs():
    return []
