"""A DLRM-like recommender: bottom MLP, embedding bags, pairwise interaction, top MLP, sigmoid.

Architecture: Naumov et al., Deep Learning Recommendation Model (2019).
"""

from itertools import pairwise

import torch
from torch import nn

BATCH, DENSE, TABLES, ROWS, DIM, BAG = 2048, 13, 8, 10000, 64, 4


def mlp(sizes: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class Model(nn.Module):
    def __init__(self, dense: int, tables: int, rows: int, dim: int) -> None:
        super().__init__()
        self.bottom = mlp((dense, 256, 128, dim))
        self.tables = nn.ModuleList(nn.Embedding(rows, dim) for _ in range(tables))
        features = tables + 1
        self.register_buffer("pairs", torch.tril_indices(features, features, -1))
        self.top = mlp((dim + features * (features - 1) // 2, 256, 128))
        self.click = nn.Linear(128, 1)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        x = self.bottom(dense)
        pooled = [table(sparse[:, i]).sum(dim=1) for i, table in enumerate(self.tables)]
        features = torch.stack([x, *pooled], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        interactions = products[:, self.pairs[0], self.pairs[1]]
        return torch.sigmoid(self.click(self.top(torch.cat((x, interactions), dim=1))))


def get_inputs():
    return [torch.randn(BATCH, DENSE), torch.randint(0, ROWS, (BATCH, TABLES, BAG))]


def get_init_inputs():
    return [DENSE, TABLES, ROWS, DIM]
