"""
op_type: pointwise
policy: anything-faster
about: Hour of the day and day of the week, 0 for Sunday, of times in seconds since 1970, as features of a forecaster. Draws are from 1970 to 2038.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, seconds):
        days = torch.div(seconds, 86400, rounding_mode="floor")
        hours = torch.div(seconds - days * 86400, 3600, rounding_mode="floor")
        return hours, torch.remainder(days + 4, 7)


def get_inputs():
    return [torch.randint(0, 2**31, (1 << 18,))]


def get_init_inputs():
    return []
