"""
op_type: other
policy: anything-faster
about: The norm of each sample's own gradient of a small network, as clipping in private training needs it.
"""

import torch
from torch.func import functional_call, grad, vmap

finite = True


class Model(torch.nn.Module):
    def __init__(self, inner, hidden, outer):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(inner, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, outer))

    def forward(self, x, y):
        weights = {name: p.detach() for name, p in self.net.named_parameters()}

        def loss(weights, x, y):
            return (functional_call(self.net, weights, (x,)) - y).square().sum() / 2

        gradients = vmap(grad(loss), (None, 0, 0))(weights, x, y)
        return sum(g.flatten(1).square().sum(1) for g in gradients.values()).sqrt()


def get_inputs():
    return [torch.randn(128, 64), torch.randn(128, 10)]


def get_init_inputs():
    return [64, 128, 10]
