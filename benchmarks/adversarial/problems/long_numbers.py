"""
op_type: other
policy: anything-faster
about: Sums of pairs of 2048-bit numbers, in 64 limbs of 32 bits, the least first; the last carry is dropped.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        carry = torch.zeros(a.shape[0], dtype=torch.int64)
        limbs = []
        for n in range(a.shape[1]):
            total = a[:, n] + b[:, n] + carry
            limbs.append(total & 0xFFFFFFFF)
            carry = total >> 32
        return torch.stack(limbs, 1)


def get_inputs():
    return [torch.randint(0, 1 << 32, (1024, 64)), torch.randint(0, 1 << 32, (1024, 64))]


def get_init_inputs():
    return []
