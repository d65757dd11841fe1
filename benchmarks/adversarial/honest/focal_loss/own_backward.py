"""
problem: focal_loss
style: In terms of the logit of the right class, with a backward pass of its own that keeps two tensors.
"""

import torch
import torch.nn.functional as F


class Focal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, is_object):
        wrong = torch.where(is_object, -logits, logits)
        ctx.save_for_backward(wrong, is_object)
        s = torch.sigmoid(wrong)
        share = torch.where(is_object, 0.25, 0.75).to(logits.dtype)
        return F.softplus(wrong).mul_(s).mul_(s).mul_(share)

    @staticmethod
    def backward(ctx, grad):
        wrong, is_object = ctx.saved_tensors
        s = torch.sigmoid(wrong)
        share = torch.where(is_object, -0.25, 0.75).to(grad.dtype)
        slope = s * s * (s + 2 * torch.sigmoid(-wrong) * F.softplus(wrong))
        return grad * share * slope, None


class ModelNew(torch.nn.Module):
    def forward(self, logits, is_object):
        return Focal.apply(logits, is_object)
