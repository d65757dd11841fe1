"""
problem: gated_blocks
style: Modules that hold loose parameters under the reference's names; the model calls functions, with sums in place.
"""

import torch
import torch.nn.functional as F


class Shell(torch.nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(shape))
        self.bias = torch.nn.Parameter(torch.zeros(shape[0]))


class ModelNew(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        shapes = {"norm": (width,), "value": (2 * width, width), "gate": (2 * width, width), "down": (width, 2 * width)}
        blocks = torch.nn.Module()
        for i in range(depth):
            blocks.add_module(str(i), torch.nn.ModuleDict({name: Shell(*shape) for name, shape in shapes.items()}))
        self.blocks = blocks
        self.head = Shell(1, width)

    @torch.no_grad()
    def forward(self, x):
        shape = x.shape
        x = x.reshape(shape[:-1].numel(), shape[-1])
        for block in self.blocks.children():
            h = F.layer_norm(x, x.shape[-1:], block["norm"].weight, block["norm"].bias)
            value = torch.addmm(block["value"].bias, h, block["value"].weight.t())
            gate = torch.addmm(block["gate"].bias, h, block["gate"].weight.t()).sigmoid_()
            x = torch.addmm(block["down"].bias, value.mul_(gate), block["down"].weight.t()).add_(x)
        return F.linear(x.relu(), self.head.weight, self.head.bias).view(shape[:-1])
