"""A ResNet-like CNN: stem, basic blocks with batch norm in inference, global pooling, classifier.

Architecture: He et al., Deep Residual Learning for Image Recognition (2015).
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

BATCH, SIZE, CLASSES = 8, 112, 100


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class Model(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 32, 7, stride=2, padding=3, bias=False)
        self.bn = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        widths = (32, 32, 64, 128)
        self.blocks = nn.Sequential(
            *(BasicBlock(a, b, 1 if i == 0 else 2) for i, (a, b) in enumerate(pairwise(widths)))
        )
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(F.relu(self.bn(self.conv(x))))
        x = self.blocks(x)
        return self.fc(x.mean(dim=(2, 3)))


def get_inputs():
    return [torch.rand(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return [CLASSES]
