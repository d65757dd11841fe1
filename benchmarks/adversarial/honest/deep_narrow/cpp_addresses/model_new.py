"""
problem: deep_narrow
style: One call for all layers. The addresses of weights and biases are read anew each time and go over as a table, so nothing can be out of date.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        table = []
        for layer in self.layers:
            for p in (layer.weight, layer.bias):
                if p.dtype != torch.float32 or not p.is_contiguous():
                    raise TypeError("contiguous weights in single precision are expected")
                table.append(p.data_ptr())
        out = x.clone(memory_format=torch.contiguous_format)
        width = x.shape[-1]
        if width != self.layers[0].in_features:
            raise RuntimeError("the input has another width than the network")
        lib.network(out, torch.tensor(table), x.numel() // width, width, len(self.layers))
        return out if x.is_contiguous() else torch.empty_like(x).copy_(out)
