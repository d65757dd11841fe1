"""
problem: patches
style: Patches are copied to scratch memory that the module keeps and enlarges, then one product adds them to the positions in place.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, tokens):
        super().__init__()
        self.proj = torch.nn.Conv2d(3, width, 16, stride=16)
        self.position = torch.nn.Parameter(torch.randn(1, tokens, width) * 0.02)
        self._scratch = torch.empty(0)

    @torch.no_grad()
    def forward(self, images):
        n, c, h, w = images.shape
        down, across = h // 16, w // 16
        if c != 3 or not down or not across or images.dtype != torch.float32:
            raise ValueError("images of at least one patch are expected")
        count, size = n * down * across, c * 256
        if self._scratch.numel() < count * size:
            self._scratch = torch.empty(count * size)
        rows = self._scratch[: count * size]
        cut = images[:, :, : down * 16, : across * 16].unflatten(3, (across, 16)).unflatten(2, (down, 16))
        rows.view(n, down, across, c, 16, 16).copy_(cut.permute(0, 2, 4, 1, 3, 5))
        out = (self.position + self.proj.bias).expand(n, down * across, -1).clone(memory_format=torch.contiguous_format)
        out.view(count, out.shape[2]).addmm_(rows.view(count, size), self.proj.weight.flatten(1).t())
        return out
