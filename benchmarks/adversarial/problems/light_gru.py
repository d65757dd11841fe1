"""
op_type: scan
policy: anything-faster
about: A minimal gated recurrent unit, whose gates do not depend on its state.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, gates, values):
        share, new = torch.sigmoid(gates), torch.tanh(values)
        state = torch.zeros_like(new[:, 0])
        states = []
        for t in range(gates.shape[1]):
            state = torch.lerp(state, new[:, t], share[:, t])
            states.append(state)
        return torch.stack(states, 1)


def get_inputs():
    return [torch.randn(4, 1024, 64), torch.randn(4, 1024, 64)]


def get_init_inputs():
    return []
