"""
problem: log_mel
style: Frames by as_strided of the reflected signal, power without its root, and the product in the order of frames. The answer is a transposed view.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, size, hop, bands):
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size))
        self.register_buffer("bank", torch.rand(bands, size // 2 + 1) / size)

    def forward(self, audio):
        if audio.dim() != 2:
            raise ValueError("a batch of signals is expected")
        padded = F.pad(audio, (self.size // 2, self.size // 2), mode="reflect")
        frames = padded.unfold(-1, self.size, self.hop)
        waves = torch.view_as_real(torch.fft.rfft(frames * self.window))
        power = waves.square_().sum(-1)
        return (power @ self.bank.t()).add_(1e-3).log_().transpose(1, 2)
