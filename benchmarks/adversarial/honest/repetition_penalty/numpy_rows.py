"""
problem: repetition_penalty
style: numpy, each row's distinct tokens penalised in place in the new array.
"""

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, logits, history, penalty=1.3, temperature=0.8):
        if logits.dtype != torch.float32 or logits.dim() != 2 or len(history) > len(logits):
            raise ValueError("rows of float32 logits are expected")
        if history.numel() and not 0 <= int(history.min()) <= int(history.max()) < logits.shape[1]:
            raise IndexError("a token is outside of the vocabulary")
        out = np.array(logits.numpy(), order="C")
        penalty, temperature = np.float32(penalty), np.float32(temperature)
        for row, tokens in zip(out, history.numpy()):
            seen = row[tokens]
            row[tokens] = np.where(seen < 0, seen * penalty, seen / penalty)
        out /= temperature
        return torch.from_numpy(out)
