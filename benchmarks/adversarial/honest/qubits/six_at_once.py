"""
problem: qubits
style: The gates of six qubits as one matrix of 64 rows (a Kronecker product), so that all is two products of matrices.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, qubits):
        super().__init__()
        self.angles = torch.nn.Parameter(torch.randn(qubits))
        self.phases = torch.nn.Parameter(torch.randn(qubits))

    def matrix(self, angles, phases):
        whole = torch.ones(1, 1, dtype=torch.complex128)
        for angle, phase in zip(angles.double(), phases.double()):
            c, s = torch.cos(angle / 2), -1j * torch.sin(angle / 2)
            turn = torch.exp(1j * phase)
            whole = torch.kron(whole, torch.stack([torch.stack([c + 0j, s]), torch.stack([turn * s, turn * c])]))
        return whole.to(torch.complex64)

    @torch.no_grad()
    def forward(self, state):
        qubits = self.angles.numel()
        if state.shape[1:] != (2**qubits,) or state.dtype != torch.complex64:
            raise ValueError("states of all qubits are expected")
        half = qubits // 2
        first = self.matrix(self.angles[:half], self.phases[:half])
        rest = self.matrix(self.angles[half:], self.phases[half:])
        v = state.reshape(len(state), 2**half, 2 ** (qubits - half))
        return (first @ (v @ rest.t())).flatten(1)
