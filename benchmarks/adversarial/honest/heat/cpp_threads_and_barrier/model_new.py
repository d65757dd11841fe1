"""
problem: heat
style: Two C++ threads that share every plate's rows and meet at a barrier after each step. They are joined before the call ends.
"""

import torch
from agentforge_cpp import load

lib = load(__file__, "kernel.cpp")


class ModelNew(torch.nn.Module):
    def forward(self, plates, rate):
        plates = plates.contiguous()
        if plates.dim() != 3 or rate.numel() != 1:
            raise ValueError("plates and one rate are expected")
        out, other = plates.clone(), plates.clone()
        lib.heat(out, other, *plates.shape, rate.item(), torch.get_num_threads())
        return out
