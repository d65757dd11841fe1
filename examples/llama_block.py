"""Two LLaMA-style decoder blocks: RMSNorm, rotary embedding, causal attention, SwiGLU; a small story model.

Written as the published LLaMA code is (Touvron et al., 2023): attention spelled out, RMSNorm composed
of torch operators. `agentforge optimize examples/llama_block.py` makes it faster.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

BATCH, SEQUENCE = 1, 768
DIM, HEADS, HIDDEN, LAYERS = 288, 6, 768, 2


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return x * cos + rotate_half(x) * sin


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        batch, length, dim = x.shape
        shape = (batch, length, self.heads, self.head_dim)
        q = self.wq(x).view(shape).transpose(1, 2)
        k = self.wk(x).view(shape).transpose(1, 2)
        v = self.wv(x).view(shape).transpose(1, 2)
        q, k = apply_rotary(q, cos, sin), apply_rotary(k, cos, sin)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_dim)
        weights = F.softmax(scores + mask, dim=-1)
        return self.wo(torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, dim))


class FeedForward(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(dim)
        self.attention = Attention(dim, heads)
        self.feed_forward_norm = RMSNorm(dim)
        self.feed_forward = FeedForward(dim, hidden)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin, mask)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Model(nn.Module):
    cos: torch.Tensor
    sin: torch.Tensor
    mask: torch.Tensor

    def __init__(self, dim: int, heads: int, hidden: int, layers: int, length: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(dim, heads, hidden) for _ in range(layers))
        self.norm = RMSNorm(dim)
        half = torch.arange(0, dim // heads, 2).float() / (dim // heads)
        angles = torch.outer(torch.arange(length).float(), 10000.0**-half)
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.mask)
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, SEQUENCE, DIM)]


def get_init_inputs():
    return [DIM, HEADS, HIDDEN, LAYERS, SEQUENCE]
