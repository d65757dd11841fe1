"""
op_type: other
policy: anything-faster
about: A layer of a quantum circuit on state vectors of 12 qubits, a rotation about x of each qubit and a phase.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, qubits):
        super().__init__()
        self.angles = torch.nn.Parameter(torch.randn(qubits))
        self.phases = torch.nn.Parameter(torch.randn(qubits))

    def forward(self, state):
        batch = state.shape[0]
        for i, (angle, phase) in enumerate(zip(self.angles, self.phases)):
            c, s = torch.cos(angle / 2), -1j * torch.sin(angle / 2)
            turn = torch.polar(torch.ones_like(phase), phase)
            v = state.view(batch, 2**i, 2, -1)
            low, high = v[:, :, 0], v[:, :, 1]
            state = torch.stack([c * low + s * high, turn * (s * low + c * high)], 2).view(batch, -1)
        return state


def get_inputs():
    state = torch.randn(8, 4096, dtype=torch.complex64)
    return [state / state.abs().square().sum(1, keepdim=True).sqrt()]


def get_init_inputs():
    return [12]
