"""
op_type: pointwise
policy: anything-faster
about: Year, month and day of days since 1970, in the Gregorian calendar.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, days):
        z = days + 719468
        era = z // 146097
        day = z - era * 146097
        year = (day - day // 1460 + day // 36524 - day // 146096) // 365
        day = day - (365 * year + year // 4 - year // 100)
        month = (5 * day + 2) // 153
        day = day - (153 * month + 2) // 5 + 1
        month = torch.where(month < 10, month + 3, month - 9)
        return year + era * 400 + (month <= 2), month, day


def get_inputs():
    return [torch.randint(0, 36525, (1 << 17,))]


def get_init_inputs():
    return []
