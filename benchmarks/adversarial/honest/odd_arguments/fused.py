"""
problem: odd_arguments
style: one product and sum for all
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, pack, scale, *, nothing=None, options=None):
        (a, (b, places)), times = pack
        y = torch.addcmul(b.float().mean() + times * places.sum() + options["bias"], a, scale)
        if not options["centre"]:
            y -= y.mean()
        return {"y": y, "nothing": nothing, "pair": [(y.sum(1), y > 0), a.new_empty(0, 3)], "times": times}
