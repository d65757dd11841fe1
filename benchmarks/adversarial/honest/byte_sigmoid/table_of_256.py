"""
problem: byte_sigmoid
style: A table of the 256 answers, made at the first call from the buffers and again if one of them has changed, and read by numpy.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.0471))
        self.register_buffer("zero", torch.tensor(3, dtype=torch.int32))
        self.table = self.made_of = None

    def forward(self, x):
        if x.dtype != torch.int8:
            raise TypeError("8-bit integers are expected")
        key = (self.scale.data_ptr(), self.scale._version, self.zero.data_ptr(), self.zero._version)
        if key != self.made_of:
            byte = torch.arange(256, dtype=torch.uint8).view(torch.int8).float()
            y = torch.sigmoid((byte - self.zero) * self.scale)
            self.table = (torch.round(y * 256) - 128).clamp(-128, 127).to(torch.int8).numpy()
            self.made_of = key
        return torch.from_numpy(self.table.take(x.view(torch.uint8).numpy()))
