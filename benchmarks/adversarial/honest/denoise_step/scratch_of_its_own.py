"""
problem: denoise_step
style: Coefficients in tables of the buffer's present version, and a scratch tensor that is kept, resized and never given out.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.register_buffer("alphas", torch.cumprod(1 - torch.linspace(1e-4, 0.02, steps), 0))
        self.tables = self.of = None
        self.scratch = torch.empty(0)

    def roots(self):
        key = (self.alphas.data_ptr(), self.alphas._version)
        if self.of != key:
            self.tables, self.of = (self.alphas.sqrt(), (1 - self.alphas).sqrt()), key
        return self.tables

    def forward(self, x, noise, t, s):
        if x.shape != noise.shape or x.dtype != torch.float32 or noise.dtype != torch.float32:
            raise ValueError("a picture and noise of one shape are expected")
        signal, rest = self.roots()
        a, b, c, d = (table[time].view(-1, 1, 1, 1) for table, time in ((signal, t), (rest, t), (signal, s), (rest, s)))
        if self.scratch.shape != x.shape:
            self.scratch = torch.empty(x.shape)
        torch.mul(noise, b, out=self.scratch)
        image = torch.sub(x, self.scratch).div_(a).clamp_(-1, 1)
        torch.mul(image, a, out=self.scratch)
        torch.sub(x, self.scratch, out=self.scratch)
        self.scratch.div_(b).mul_(d)
        return {"sample": torch.addcmul(self.scratch, image, c), "image": image}
