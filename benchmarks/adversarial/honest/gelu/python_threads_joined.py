"""
problem: gelu
policy: anything-faster
style: Python threads over row blocks, joined before return
"""

import threading

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        half = x.shape[0] // 2

        def part(rows):
            out[rows] = torch.nn.functional.gelu(x[rows])

        threads = [threading.Thread(target=part, args=(s,)) for s in (slice(0, half), slice(half, None))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return out
