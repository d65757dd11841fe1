"""
problem: running_max
style: doubles the reach of each maximum; of equal values the first one is named
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        values, places = x.clone(), torch.arange(x.shape[1]).expand(x.shape).clone()
        step = 1
        while step < x.shape[1]:
            before, at = values[:, :-step].clone(), places[:, :-step].clone()
            later = values[:, step:]
            keep = (before >= later) | (before.isnan() & ~later.isnan())
            values[:, step:] = torch.where(keep, before, later)
            places[:, step:] = torch.where(keep, at, places[:, step:])
            step *= 2
        return values, places
