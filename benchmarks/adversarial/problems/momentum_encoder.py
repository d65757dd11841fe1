"""
op_type: model
policy: anything-faster
about: Distance between what an online network predicts and a target network gives, as in BYOL. The target begins with the online network's weights, and follows them slowly in training.
"""

import torch
import torch.nn.functional as F


def encoder(width, hidden):
    return torch.nn.Sequential(torch.nn.Linear(width, hidden), torch.nn.GELU(), torch.nn.Linear(hidden, width))


class Model(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.online = encoder(width, hidden)
        self.target = encoder(width, hidden)
        self.predictor = torch.nn.Linear(width, width)
        for ours, theirs in zip(self.online.parameters(), self.target.parameters(), strict=True):
            theirs.data.copy_(ours.data)
            theirs.requires_grad = False

    def forward(self, x):
        guess = F.normalize(self.predictor(self.online(x)), dim=-1)
        aim = F.normalize(self.target(x), dim=-1)
        return 2 - 2 * (guess * aim).sum(-1)


def get_inputs():
    return [torch.randn(1024, 128)]


def get_init_inputs():
    return [128, 512]
