"""
problem: layer_scale_mlp
style: The scale is a part of the last weight and bias, by a hook that makes them after the state dict is loaded; a change of version makes them again.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1 = torch.nn.Linear(width, hidden)
        self.fc2 = torch.nn.Linear(hidden, width)
        self.gamma = torch.nn.Parameter(1e-6 * torch.ones(width))
        self._versions = ()
        self.register_load_state_dict_post_hook(lambda module, keys: module._fold())
        self._fold()

    def _now(self):
        return self.gamma._version, self.fc2.weight._version, self.fc2.bias._version

    def _fold(self):
        gamma, fc2 = self.gamma.detach(), self.fc2
        self._weight = (fc2.weight.detach() * gamma[:, None]).t().contiguous()
        self._bias = fc2.bias.detach() * gamma
        self._versions = self._now()

    def forward(self, x):
        if self._versions != self._now():
            self._fold()
        hidden = F.gelu(self.fc1(x))
        return torch.addmm(self._bias, hidden, self._weight).add_(x)
