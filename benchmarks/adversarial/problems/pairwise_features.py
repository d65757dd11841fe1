"""
op_type: other
policy: anything-faster
about: Inner products of all pairs of a sample's embeddings beside its dense features, as in DLRM.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, dense, bags):
        vectors = torch.cat([dense[:, None], bags], 1)
        products = vectors @ vectors.transpose(1, 2)
        i, j = torch.tril_indices(vectors.shape[1], vectors.shape[1], offset=-1)
        return torch.cat([dense, products[:, i, j]], 1)


def get_inputs():
    return [torch.randn(1024, 32), torch.randn(1024, 26, 32)]


def get_init_inputs():
    return []
