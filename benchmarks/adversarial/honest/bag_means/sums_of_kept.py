"""
problem: bag_means
style: Leaves padding out first, then adds the rows of the table to those of their bags. Means are over at least one token.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(tokens, width, mode="mean", padding_idx=0)

    def forward(self, ids, offsets):
        ends = torch.cat([offsets[1:], offsets.new_tensor([ids.shape[0]])])
        bags = torch.repeat_interleave(torch.arange(offsets.shape[0]), ends - offsets)
        kept = (ids != 0).nonzero().squeeze(1)
        bags = bags[kept]
        rows = self.bag.weight.index_select(0, ids[kept])
        sums = rows.new_zeros(offsets.shape[0], rows.shape[1]).index_add_(0, bags, rows)
        return sums.div_(torch.bincount(bags, minlength=offsets.shape[0]).clamp_(min=1).unsqueeze(1))
