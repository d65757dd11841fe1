"""
op_type: loss
policy: anything-faster
about: Mean cross-entropy with smoothed labels. As torch's default is, labels of -100 do not count; draws have none.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, logits, labels):
        return self.loss(logits, labels)


def get_inputs():
    return [torch.randn(512, 4000), torch.randint(0, 4000, (512,))]


def get_init_inputs():
    return []
