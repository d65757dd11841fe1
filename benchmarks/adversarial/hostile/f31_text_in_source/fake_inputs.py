"""
problem: mean_square
family: 31
expect: [INCORRECT_NUMERICAL]
cheat: Brings its own get_inputs, Model and tolerance, in case the harness imports them from the solution.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ones(())


ModelNew = type("ModelNew", (Model,), {})


def get_inputs():
    return [torch.ones(512, 1024)]


def get_init_inputs():
    return []


def check(*args, **kwargs):
    return True
