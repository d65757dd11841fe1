"""
problem: expert_slots
style: numpy sorts tokens stably by expert; the place in the order less the expert's first place is the slot.
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, experts, capacity):
        super().__init__()
        self.experts, self.capacity = experts, capacity

    def forward(self, chosen):
        if chosen.dim() != 1 or chosen.dtype != torch.int64:
            raise ValueError("one expert for each token is expected")
        ids = chosen.numpy()
        if ids.size and not 0 <= ids.min() <= ids.max() < self.experts:
            raise ValueError("there is no such expert")
        order = np.argsort(ids.astype(np.uint16) if self.experts < 65536 else ids, kind="stable")
        load = np.bincount(ids, minlength=self.experts)
        slots = np.empty_like(ids)
        slots[order] = np.arange(ids.size) - np.repeat(load.cumsum() - load, load)
        slots = torch.from_numpy(slots)
        return slots, slots.lt(self.capacity), torch.from_numpy(load)
