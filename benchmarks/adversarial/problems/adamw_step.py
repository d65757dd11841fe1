"""
op_type: other
policy: anything-faster
about: A step of AdamW in place on parameters and both moments, and the length of the step.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, parameters, gradients, first, second, step):
        first.lerp_(gradients, 0.1)
        second.mul_(0.999).addcmul_(gradients, gradients, value=0.001)
        a, b = 1 - 0.9**step, 1 - 0.999**step
        change = 1e-2 * ((first / a) / ((second / b).sqrt() + 1e-8) + 0.05 * parameters)
        parameters.sub_(change)
        return change.norm()


def get_inputs():
    shape = (300, 700)
    step = torch.randint(1, 1000, ()).float()
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape), torch.rand(shape), step]


def get_init_inputs():
    return []
