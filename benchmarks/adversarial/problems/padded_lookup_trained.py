"""
op_type: embedding
policy: anything-faster
about: An embedding with a padding token, and its gradient. The padding row is read as any other, and never gets a gradient.
"""

import torch

differentiable = True


class Model(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.table = torch.nn.Embedding(tokens, width, padding_idx=0)

    def forward(self, ids):
        return self.table(ids)


def get_inputs():
    return [torch.randint(0, 200, (32, 64))]


def get_init_inputs():
    return [200, 96]
