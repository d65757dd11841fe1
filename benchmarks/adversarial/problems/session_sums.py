"""
op_type: reduction
policy: anything-faster
about: Sums of sessions. Each begins at its offset and ends where the next one begins; the last one goes to the end.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, values, offsets):
        ends = torch.cat([offsets[1:], offsets.new_tensor([values.shape[0]])])
        session = torch.repeat_interleave(torch.arange(offsets.shape[0]), ends - offsets)
        return torch.zeros(offsets.shape[0]).index_add_(0, session, values)


def get_inputs():
    begins = torch.randperm(131071)[:16383] + 1
    return [torch.randn(131072), torch.cat([torch.zeros(1, dtype=torch.int64), begins.sort().values])]


def get_init_inputs():
    return []
