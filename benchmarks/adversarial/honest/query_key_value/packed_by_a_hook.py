"""
problem: query_key_value
style: One product with the three weights one below the other, packed in the constructor, by a hook of load_state_dict, and when a version changes.
"""

import torch


class Part(torch.nn.Module):
    """A layer that holds its parameters and computes nothing itself."""

    def __init__(self, width, bias=True):
        super().__init__()
        limit = width**-0.5
        self.weight = torch.nn.Parameter(torch.empty(width, width).uniform_(-limit, limit))
        drawn = torch.empty(width).uniform_(-limit, limit)
        self.register_parameter("bias", torch.nn.Parameter(drawn) if bias else None)


class ModelNew(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = Part(width), Part(width, bias=False), Part(width)
        self.pack()
        self.register_load_state_dict_post_hook(lambda module, _: module.pack())

    def stamp(self):
        return [(p.data_ptr(), p._version) for p in self.parameters()]

    @torch.no_grad()
    def pack(self):
        self.weight = torch.cat([self.q.weight, self.k.weight, self.v.weight]).t().contiguous()
        self.bias = torch.cat([self.q.bias, torch.zeros_like(self.q.bias), self.v.bias])
        self.packed_of = self.stamp()

    def forward(self, x):
        if self.packed_of != self.stamp():
            self.pack()
        batch, steps, width = x.shape
        both = torch.addmm(self.bias, x.reshape(-1, width), self.weight)
        q, k, v = both.view(batch, steps, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v
