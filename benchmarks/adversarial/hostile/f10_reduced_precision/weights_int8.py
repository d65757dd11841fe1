"""
problem: mlp
family: 10
expect: [INCORRECT_NUMERICAL]
cheat: Weights quantised to eight bits.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, width)

    def forward(self, x):
        def rounded(w):
            scale = w.abs().amax(1, keepdim=True) / 127.0
            return torch.round(w / scale) * scale

        h = torch.nn.functional.linear(x, rounded(self.up.weight), self.up.bias)
        h = torch.nn.functional.gelu(h)
        return torch.nn.functional.linear(h, rounded(self.down.weight), self.down.bias)
