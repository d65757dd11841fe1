"""
op_type: attention
policy: anything-faster
about: Multi-head attention of queries to a context, with the mean of the heads' weights as second answer. Dropout does nothing outside of training.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True)

    def forward(self, x, context):
        return self.attention(x, context, context)


def get_inputs():
    return [torch.randn(4, 64, 128), torch.randn(4, 160, 128)]


def get_init_inputs():
    return [128, 8]
