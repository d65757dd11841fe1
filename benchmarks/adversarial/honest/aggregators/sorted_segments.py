"""
problem: aggregators
style: Messages are sorted by node once, then segment_reduce. The four aggregates are written into their columns.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, messages, targets):
        if targets.numel() and not 0 <= int(targets.min()) <= int(targets.max()) < 600:
            raise IndexError("there are 600 nodes")
        ordered, order = targets.sort()
        counts = torch.bincount(targets, minlength=600)
        rows, columns = messages[order], messages.shape[1]
        out = messages.new_empty(600, 4 * columns)
        for i, reduce in enumerate(["mean", "max", "min"]):
            out[:, i * columns : (i + 1) * columns] = torch.segment_reduce(rows, reduce, lengths=counts, unsafe=True)
        none = (counts == 0)[:, None]
        out.masked_fill_(none, 0.0)
        apart = (rows - out[ordered, :columns]).square_()
        squares = torch.segment_reduce(apart, "sum", lengths=counts, unsafe=True)
        torch.sqrt(squares.div_(counts.clamp(min=1)[:, None]), out=out[:, 3 * columns :])
        return out.masked_fill_(none, 0.0)
