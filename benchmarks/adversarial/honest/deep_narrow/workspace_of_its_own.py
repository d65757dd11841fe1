"""
problem: deep_narrow
style: One workspace for all layers, kept for later calls of the same size and never given out. The answer is a copy of the input, changed in place.
"""

import torch


class ModelNew(torch.nn.Module):
    _workspace = None

    def __init__(self, width, depth):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))

    @torch.no_grad()
    def forward(self, x):
        y = x.clone(memory_format=torch.contiguous_format)
        rows = y.view(-1, x.shape[-1]) if x.numel() else y.reshape(0, x.shape[-1])
        work = self._workspace
        if work is None or work.shape != rows.shape or work.dtype != rows.dtype:
            work = self._workspace = torch.empty_like(rows)
        for layer in self.layers:
            torch.addmm(layer.bias, rows, layer.weight.t(), out=work)
            rows.add_(work.relu_())
        return y if x.is_contiguous() else torch.empty_like(x).copy_(y)
