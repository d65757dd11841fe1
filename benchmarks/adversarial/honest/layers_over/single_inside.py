"""
problem: layers_over
style: Single precision inside, one rounding to half at the end, and lerp in place on the picture.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, background, colours, alphas):
        if background.dtype != torch.float16 or colours.dtype != torch.float16 or alphas.dtype != torch.float16:
            raise TypeError("half precision is expected")
        picture = background.float()
        for colour, alpha in zip(colours.unbind(0), alphas.unbind(0)):
            share = alpha.float().clamp_(0, 1)
            picture = torch.addcmul(picture * (1 - share), colour.float(), share)
        return picture.half()
