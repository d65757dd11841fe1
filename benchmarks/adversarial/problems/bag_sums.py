"""
op_type: reduction
policy: anything-faster
about: Sums of the rows of each bag, which begins at a given place and ends where the next one begins. No bag of a draw is empty.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x, starts):
        row = torch.arange(x.shape[0])
        ends = torch.cat([starts[1:], starts.new_tensor([x.shape[0]])])
        member = (row >= starts[:, None]) & (row < ends[:, None])
        return member.to(x.dtype) @ x


def get_inputs():
    later = torch.randperm(4095)[:511].add(1).sort().values
    return [torch.randn(4096, 48), torch.cat([later.new_zeros(1), later])]


def get_init_inputs():
    return []
