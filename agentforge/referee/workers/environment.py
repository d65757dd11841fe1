"""Environment variables of workers, and the state of their allocator.

glibc maps a large block anew, with page faults, until a block of that size was freed once (mallopt(3),
M_MMAP_THRESHOLD: dynamic, at most 32 MiB). Workers have the thresholds of a long-lived process, at their
maximum, and before timing their heaps are emptied.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
from collections.abc import Mapping
from pathlib import Path

from agentforge.devices.toolchain import search_path

from . import headers

PACKAGE_ROOT = Path(__file__).resolve().parents[3]
"""Folder that workers import this package from."""
_KEPT = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
"""Variables that workers keep: libraries' search path, the CUDA toolkit, and the choice of GPUs."""
_MOST_BYTES = 32 << 20
"""DEFAULT_MMAP_THRESHOLD_MAX on 64 bits. Larger blocks are mapped anew, unless a gap in the heap fits."""
_IS_MAPPED = 0x2
_USER = "agentforge"
"""A confined worker's user has no name in the system, and torch.compile asks for one."""


def worker_environment(threads: int, home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """The same for every measured worker: nothing of the user's except search paths, the toolkit and the
    choice of GPUs, and nothing that changes the allocator."""
    kept = {k: os.environ[k] for k in _KEPT if k in os.environ}
    return {
        **kept,
        "PATH": search_path(),
        "LANG": "C.UTF-8",
        "USER": _USER,
        "HOME": str(home),
        "TMPDIR": str(home),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(PACKAGE_ROOT),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        # The check for a GPU must not initialise CUDA: workers are forked afterwards.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        **extra,
    }


def inductor_folder(cache: Path, definition: str = "") -> Path:
    """Cache folder of Inductor for the compiled baselines of a definition (its hash), below the referee's."""
    return cache / "inductor" / definition


def baseline_cache(cache: Path, definition: str = "") -> dict[str, str]:
    """Makes `inductor_folder` Inductor's."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(inductor_folder(cache, definition))}


def compiler_environment(cache: Path) -> dict[str, str]:
    """What the compiler's forkserver has beside the variables of every worker."""
    return {**baseline_cache(cache), headers.VARIABLE: str(headers.header_folder(cache))}


def raise_thresholds() -> None:
    """Let the dynamic thresholds reach their maximum, by freeing one block of the largest size counted."""
    import torch  # not for the forkserver of compilers

    torch.empty(_MOST_BYTES - (1 << 16), dtype=torch.uint8)


def level_allocator(blocked: list[int]) -> None:
    """Leave no memory free that was used for other work: neither pages nor large gaps in the heap."""
    gc.collect()
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):  # another C library than glibc
        return
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    while blocked:
        libc.free(blocked.pop())
    libc.malloc_trim(0)
    while block := libc.malloc(_MOST_BYTES + mmap.PAGESIZE):
        # The size before a block has a bit that says whether it was mapped.
        if ctypes.c_size_t.from_address(block - ctypes.sizeof(ctypes.c_size_t)).value & _IS_MAPPED:
            libc.free(block)
            break
        blocked.append(block)
