"""
problem: softcap_logits
policy: anything-faster
style: A usual PyTorch extension, whose source lies beside the Python file, by cpp_extension.load.
"""

from pathlib import Path

import torch
from torch.utils.cpp_extension import load

extension = load(
    name="softcap_extension",
    sources=[str(Path(__file__).with_name("softcap.cpp"))],
    extra_cflags=["-O3", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(torch.nn.Module):
    def __init__(self, cap):
        super().__init__()
        self.cap = cap

    def forward(self, logits):
        return extension.softcap(logits, self.cap)
