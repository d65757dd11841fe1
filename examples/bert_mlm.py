"""A BERT-style encoder with a masked-language-model head and its cross-entropy loss.

Post-norm blocks, exact GELU, additive padding mask; the forward returns the loss and the logits, as a
training step's forward does. Architecture: Devlin et al., BERT (2018).
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

BATCH, SEQUENCE = 4, 128
VOCABULARY, DIM, HEADS, LAYERS = 8192, 384, 6, 3
IGNORED = -100


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.output = nn.Linear(dim, dim)
        self.attention_norm = nn.LayerNorm(dim, eps=1e-12)
        self.intermediate = nn.Linear(dim, 4 * dim)
        self.contract = nn.Linear(4 * dim, dim)
        self.output_norm = nn.LayerNorm(dim, eps=1e-12)

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        batch, length, dim = x.shape
        shape = (batch, length, self.heads, dim // self.heads)
        q = self.query(x).view(shape).transpose(1, 2)
        k = self.key(x).view(shape).transpose(1, 2)
        v = self.value(x).view(shape).transpose(1, 2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(dim // self.heads) + padding
        context = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(batch, length, dim)
        x = self.attention_norm(x + self.output(context))
        return self.output_norm(x + self.contract(F.gelu(self.intermediate(x))))


class Model(nn.Module):
    def __init__(self, vocabulary: int, dim: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, dim)
        self.position = nn.Embedding(length, dim)
        self.norm = nn.LayerNorm(dim, eps=1e-12)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.transform = nn.Linear(dim, dim)
        self.transform_norm = nn.LayerNorm(dim, eps=1e-12)
        self.decoder = nn.Linear(dim, vocabulary)

    def forward(
        self, tokens: torch.Tensor, attention_mask: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.word(tokens) + self.position(positions))
        padding = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -1e4
        for layer in self.layers:
            x = layer(x, padding)
        logits = self.decoder(self.transform_norm(F.gelu(self.transform(x))))
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        return loss, logits


def get_inputs():
    tokens = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE))
    attention_mask = (torch.rand(BATCH, SEQUENCE) > 0.1).long()
    labels = torch.where(torch.rand(BATCH, SEQUENCE) < 0.15, tokens, IGNORED)
    return [tokens, attention_mask, labels]


def get_init_inputs():
    return [VOCABULARY, DIM, HEADS, LAYERS, SEQUENCE]
