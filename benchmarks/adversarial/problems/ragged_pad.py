"""
op_type: memory
policy: anything-faster
about: Sequences that lie one after the other, padded with zeros to the longest one, and which places are filled.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, rows, lengths):
        parts = rows.split(lengths.tolist())
        padded = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
        return padded, torch.arange(padded.shape[1]) < lengths[:, None]


def get_inputs():
    lengths = torch.bincount(torch.randint(0, 64, (16_000,)), minlength=64)
    return [torch.randn(16_000, 96), lengths]


def get_init_inputs():
    return []
