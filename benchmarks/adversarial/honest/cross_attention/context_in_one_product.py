"""
problem: cross_attention
style: Keys and values from one product, scale in place on the scores, weights read in forward. In training it is torch's own layer.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True)

    def forward(self, x, context):
        layer = self.attention
        if layer.training or x.dim() != 3:
            return layer(x, context, context)
        with torch.no_grad():
            (batch, n, width), m, heads = x.shape, context.shape[1], layer.num_heads
            weight, bias, each = layer.in_proj_weight, layer.in_proj_bias, width // heads
            q = F.linear(x, weight[:width], bias[:width]).view(batch, n, heads, each).transpose(1, 2)
            kv = F.linear(context, weight[width:], bias[width:]).view(batch, m, 2, heads, each)
            k, v = kv.permute(2, 0, 3, 1, 4)
            scores = torch.matmul(q, k.transpose(-1, -2)).mul_(each**-0.5)
            weights = torch.softmax(scores, -1)
            out = torch.matmul(weights, v).transpose(1, 2).reshape(batch, n, width)
            return layer.out_proj(out), weights.mean(1)
