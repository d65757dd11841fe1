"""Small models of the kinds that users bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class LlamaBlock(nn.Module):
    def __init__(self, dim: int = 32, heads: int = 4, tokens: int = 16) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RMSNorm(dim), RMSNorm(dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(dim, 2 * dim, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * dim, dim, bias=False)
        width = dim // heads
        angles = torch.outer(torch.arange(tokens).float(), 1 / 10000 ** (torch.arange(0, width, 2) / width))
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def forward(self, x):
        batch, tokens, dim = x.shape
        y = self.norm1(x)
        q, k, v = (p(y).view(batch, tokens, self.heads, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, tokens, dim))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Gpt2Block(nn.Module):
    def __init__(self, dim: int = 32, heads: int = 4, tokens: int = 16) -> None:
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc, self.out = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("bias", torch.tril(torch.ones(tokens, tokens)).view(1, 1, tokens, tokens))

    def forward(self, x):
        batch, tokens, dim = x.shape
        q, k, v = (
            t.view(batch, tokens, self.heads, -1).transpose(1, 2)
            for t in self.qkv(self.ln1(x)).split(dim, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * 0.35
        scores = scores.masked_fill(self.bias[:, :, :tokens, :tokens] == 0, float("-inf"))
        y = self.drop(F.softmax(scores, dim=-1)) @ v
        x = x + self.drop(self.proj(y.transpose(1, 2).contiguous().view(batch, tokens, dim)))
        return x + self.out(F.gelu(self.fc(self.ln2(x))))


class BertHead(nn.Module):
    def __init__(self, vocabulary: int = 50, dim: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.layer = nn.TransformerEncoderLayer(dim, 4, 64, batch_first=True)
        self.head = nn.Linear(dim, vocabulary)

    def forward(self, tokens, labels, mask=None):
        x = self.layer(self.embed(tokens), src_mask=mask)
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.bn1, self.bn2 = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        self.relu, self.pool, self.fc = nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Linear(8, 10)

    def forward(self, x):
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        out = self.bn2(self.conv2(x))
        out += x
        return self.fc(self.relu(out).mean((2, 3)))


class Dlrm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(20, 8, mode="sum") for _ in range(3))
        self.bottom, self.top = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8 + 6, 1)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        vectors = torch.stack([x] + [t(s) for t, s in zip(self.tables, sparse, strict=True)], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        rows, columns = torch.tril_indices(4, 4, offset=-1)
        return torch.sigmoid(self.top(torch.cat([x, products[:, rows, columns]], dim=1)))


class PartlyDynamic(nn.Module):
    """A branch on a value: the whole does not export, its blocks do."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Gpt2Block() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            if x.sum().item() > 1e9:
                x = x * 0
        return x


Made = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]


def _made(model: nn.Module, *args: Any, **kwargs: Any) -> Made:
    return model.eval(), args, kwargs


def _causal(n: int) -> torch.Tensor:
    return torch.full((n, n), float("-inf")).triu(1)


MODELS: dict[str, Callable[[], Made]] = {
    "llama": lambda: _made(LlamaBlock(), torch.randn(2, 16, 32)),
    "gpt2": lambda: _made(Gpt2Block(), torch.randn(2, 16, 32)),
    "bert": lambda: _made(
        BertHead(), torch.randint(0, 50, (2, 8)), torch.randint(0, 50, (2, 8)), mask=_causal(8)
    ),
    "cnn": lambda: _made(Cnn(), torch.randn(2, 3, 16, 16)),
    "dlrm": lambda: _made(Dlrm(), torch.randn(5, 4), [torch.randint(0, 20, (5, 3)) for _ in range(3)]),
}


def make(name: str) -> Made:
    torch.manual_seed(0)
    return MODELS[name]()


class Cache(nn.Module):
    """Writes each row below the last one, and has room for three."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(3, 8))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.rows.index_copy_(0, self.position, x * 2)
        self.position.add_(1)
        return torch.relu(self.rows + x).sum(0)
