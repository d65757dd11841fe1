"""
op_type: matmul
policy: anything-faster
about: Inner products of 8-bit vectors, such as quantised embeddings, in 32 bits.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, queries, keys):
        return queries.to(torch.int32) @ keys.to(torch.int32).t()


def get_inputs():
    shapes = [(32, 384), (1024, 384)]
    return [torch.randint(-128, 128, shape, dtype=torch.int8) for shape in shapes]


def get_init_inputs():
    return []
