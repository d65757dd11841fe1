"""
problem: contrastive_logits
style: Temperature and length are one factor for each row, and lengths are multiplied as reciprocals.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = torch.nn.Parameter(torch.tensor(2.6592600369327779))

    def forward(self, image, text):
        rows = image * (self.logit_scale.exp() / torch.linalg.vector_norm(image, dim=-1, keepdim=True))
        columns = text * torch.linalg.vector_norm(text, dim=-1, keepdim=True).reciprocal_()
        return torch.mm(rows, columns.t())
