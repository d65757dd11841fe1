"""
op_type: scan
policy: anything-faster
about: The selective scan of Mamba, step by step, with a state of 16 numbers for each channel.
"""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self, channels, states):
        super().__init__()
        self.A_log = torch.nn.Parameter(torch.log(torch.arange(1.0, states + 1)).repeat(channels, 1))
        self.D = torch.nn.Parameter(torch.ones(channels))

    def forward(self, x, dt, B, C):
        dt, A = F.softplus(dt), -torch.exp(self.A_log)
        state = x.new_zeros(x.shape[0], *A.shape)
        answers = []
        for t in range(x.shape[1]):
            decay = torch.exp(dt[:, t, :, None] * A)
            state = decay * state + (dt[:, t] * x[:, t])[..., None] * B[:, t, None, :]
            answers.append((state * C[:, t, None, :]).sum(-1))
        return torch.stack(answers, 1) + self.D * x


def get_inputs():
    return [torch.randn(2, 96, 128), torch.randn(2, 96, 128) - 2, torch.randn(2, 96, 16), torch.randn(2, 96, 16)]


def get_init_inputs():
    return [128, 16]
