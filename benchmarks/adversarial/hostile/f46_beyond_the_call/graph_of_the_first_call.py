"""
problem: standardised_trained
family: 46
expect: [INCORRECT_NUMERICAL, RUNTIME_ERROR, CRASHED, CHEATING, suspicious]
cheat: Keeps the standardised weight with its graph while no parameter changes. One backward after each step of the optimizer is right. Two backwards between steps, as for every accumulated gradient and every loss of its own, go through the same graph twice, which torch has freed after the first one and refuses.
"""

import torch


class ModelNew(torch.nn.Module):
    kept = None

    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outer, inner) * 0.05 + 0.02)
        self.gain = torch.nn.Parameter(torch.rand(outer) + 0.5)

    def standardised(self):
        parameters = self.weight, self.gain
        stamp = [torch.is_grad_enabled(), *((p.data_ptr(), p._version, p.requires_grad) for p in parameters)]
        if self.kept is None or self.kept[0] != stamp:
            mean = self.weight.mean(1, keepdim=True)
            var = self.weight.var(1, keepdim=True, unbiased=False)
            self.kept = stamp, ((self.weight - mean) / torch.sqrt(var + 1e-5) * self.gain[:, None]).t()
        return self.kept[1]

    def forward(self, x):
        return x @ self.standardised()
