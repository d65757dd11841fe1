"""
problem: softmax_rows
policy: anything-faster
style: Looks at all of its input: where no value is large the maximum is left out, which is right there.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if x.numel() and float(x.abs().amax()) < 20.0:  # NaN and infinities compare as false
            e = torch.exp(x)
            return e.div_(e.sum(dim=-1, keepdim=True))
        return torch.softmax(x, dim=-1)
