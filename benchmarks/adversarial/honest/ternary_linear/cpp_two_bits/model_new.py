"""
problem: ternary_linear
style: Products of bytes with the two bits as they are stored, by VNNI, AVX2 or neither, as the processor says. The sum of the inputs makes up for the offset of one.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.register_buffer("packed", torch.zeros(outer, inner // 4, dtype=torch.uint8))
        self.register_buffer("scale", torch.ones(outer))

    def forward(self, x):
        outer, bytes_ = self.packed.shape
        if x.shape[-1] != 4 * bytes_:
            raise ValueError(f"rows of {4 * bytes_} numbers are expected")
        factor = 127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        rounded = (x * factor).round_().clamp_(-128, 127)
        # One number that is not finite makes its whole row NaN, which integers cannot say.
        lost = rounded.isnan().any(-1, keepdim=True)
        planes = rounded.nan_to_num_(0.0).to(torch.int8).reshape(-1, bytes_, 4).transpose(1, 2).contiguous()
        sums = planes.sum((1, 2), dtype=torch.int32)
        out = torch.empty(len(planes), outer, dtype=torch.int32)
        lib.product(planes, sums, self.packed.contiguous(), out, len(planes), outer, bytes_)
        y = out.view(*x.shape[:-1], outer).to(x.dtype).div_(factor).mul_(self.scale)
        return y.masked_fill_(lost, torch.nan)
