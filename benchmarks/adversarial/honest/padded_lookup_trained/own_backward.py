"""
problem: padded_lookup_trained
style: An autograd function that reads rows of the table, and adds gradients to all of its rows but the one of padding.
"""

import torch


class Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = table.shape[0]
        return table.index_select(0, ids.reshape(-1)).view(*ids.shape, table.shape[1])

    @staticmethod
    def backward(ctx, grad):
        (ids,) = ctx.saved_tensors
        flat = grad.reshape(-1, grad.shape[-1])
        into = flat.new_zeros(ctx.rows, flat.shape[1]).index_add_(0, ids.reshape(-1), flat)
        into[0] = 0
        return into, None


class ModelNew(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.table = torch.nn.Embedding(tokens, width, padding_idx=0)

    def forward(self, ids):
        return Lookup.apply(self.table.weight, ids)
