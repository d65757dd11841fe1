"""
problem: paged_attention
style: A loop over sequences that gathers only pages in use, and torch's attention. A sequence without tokens gives NaN, as softmax does.
"""

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def forward(self, q, keys, values, table, lengths):
        size, longest = keys.shape[1], table.shape[1] * keys.shape[1]
        out = torch.empty_like(q, memory_format=torch.contiguous_format)
        for i, length in enumerate(lengths.tolist()):
            length = min(length, longest)
            if length <= 0:
                out[i] = float("nan")
                continue
            pages = table[i, : -(-length // size)]
            k = keys[pages].flatten(0, 1)[:length].transpose(0, 1)
            v = values[pages].flatten(0, 1)[:length].transpose(0, 1)
            out[i] = F.scaled_dot_product_attention(q[i, :, None], k, v)[:, 0]
        return out
