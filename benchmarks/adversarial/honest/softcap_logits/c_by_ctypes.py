"""
problem: softcap_logits
policy: anything-faster
style: C compiled by gcc when the file is imported, called by ctypes.
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import torch

_SOURCE = r"""
#include <math.h>
#include <stdint.h>

void softcap(const float* restrict x, float* restrict out, int64_t n, float cap) {
    for (int64_t i = 0; i < n; ++i) out[i] = cap * tanhf(x[i] / cap);
}
"""


def _built():
    folder = Path(tempfile.mkdtemp(prefix="softcap-"))
    (folder / "softcap.c").write_text(_SOURCE)
    command = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", "softcap.c", "-o", "softcap.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "softcap.so"))
    library.softcap.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_float]
    library.softcap.restype = None
    return library


library = _built()


class ModelNew(torch.nn.Module):
    def __init__(self, cap):
        super().__init__()
        self.cap = cap

    def forward(self, logits):
        if logits.dtype != torch.float32:
            raise TypeError("float32 logits are expected")
        logits = logits.contiguous()
        out = torch.empty_like(logits)
        library.softcap(logits.data_ptr(), out.data_ptr(), logits.numel(), self.cap)
        return out
