"""
problem: polyphase
style: One short filter for each of the three phases, whose answers are put in turn. No tap meets a zero that was put in.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, taps):
        super().__init__()
        if taps % 2 == 0:
            raise ValueError("an odd number of taps is expected")
        t = torch.arange(taps) - (taps - 1) / 2
        window = torch.hann_window(taps + 2, periodic=False)[1:-1]
        self.register_buffer("filter", torch.sinc(t / 3) * window)

    def forward(self, x):
        batch, steps = x.shape
        if steps == 0:
            raise ValueError("sound is expected")
        taps, half = self.filter.numel(), self.filter.numel() // 2
        # Output i reads wide[2 i - half + k], which is x[j] if 2 i - half + k = 3 j.
        # With i = 3 m + r: 3 j = 6 m + 2 r - half + k.
        out = x.new_empty(batch, -(-3 * steps // 2))
        padded = F.pad(x[:, None], (half // 3 + 1, half // 3 + 3))
        for r in range(3):
            first = (half - 2 * r) % 3
            part, count = self.filter[first::3], out[:, r::3].shape[1]
            if count:
                begin = (2 * r - half + first) // 3 + half // 3 + 1
                y = F.conv1d(padded[..., begin:], part.view(1, 1, -1), stride=2)
                out[:, r::3] = y[:, 0, :count]
        return out
