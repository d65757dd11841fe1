"""Compiler commands of the emulator: from CUDA C++ to a shared object whose kernels run on fibers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from agentforge.languages.cpp.shipped import agentforge_cpp

FOLDER = Path(__file__).parent
"""Folder of the emulator's headers and scheduler."""
VERSION = "1"

_COMMON = ["-std=c++20", "-O2", "-g1", "-fPIC", "-march=native", "-fopenmp", "-fvisibility=hidden"]
_CHECKED = [
    "-fno-strict-aliasing",  # kernels read float as float4
    "-ffp-contract=fast",  # nvcc fuses multiply and add
    "-fsanitize=kernel-address",  # a call before each access, answered by scheduler.cpp
    "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-stack=0",
    "--param=asan-globals=0",
    "-fsanitize=bounds,alignment",
]


@lru_cache(maxsize=1)
def emulator_hash() -> str:
    """Hash of the emulator's own files and flags."""
    digest = hashlib.sha256(repr((VERSION, _COMMON, _CHECKED, agentforge_cpp.machine())).encode())
    for path in sorted(p for p in FOLDER.rglob("*") if p.is_file()):
        digest.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def scheduler_command(emulator: Path, output: str) -> list[str]:
    """Command that compiles the scheduler, which is the same for all kernels.

    Args:
        emulator: `FOLDER`, or a copy that a sandboxed compiler can see.
    """
    return [agentforge_cpp.compiler(), *_COMMON, "-c", str(emulator / "scheduler.cpp"), "-o", output]


def kernel_command(
    emulator: Path, source: str, scheduler: str, output: str, folder: str, races: bool
) -> list[str]:
    """Command that compiles a source written by `for_cpu` and links it with the scheduler.

    Args:
        output: shared object; it uses torch's OpenMP once torch is loaded.
        races: report accesses to shared memory that no barrier orders.
    """
    defines = [f"-DCUDA_ON_CPU_RACES={int(races)}", "-w"]
    includes = [f"-I{emulator}", f"-I{folder}", "-include", "prelude.h"]
    return [agentforge_cpp.compiler(), *_COMMON, *_CHECKED, *defines, *includes, "-shared", "-x", "c++",
            source, "-x", "none", scheduler, "-o", output, "-ldl", "-lm"]  # fmt: skip


def inline_command(
    emulator: Path, source: str, scheduler: str, output: str, defines: Sequence[str], races: bool
) -> list[str]:
    """Command that compiles a translation unit of `load_inline.port`, with a host side that calls torch.

    Args:
        output: shared object for `torch.ops.load_library`; it exports one function per kernel and no others.
    """
    includes, libraries = agentforge_cpp.torch_folders(("torch-headers",))
    host = emulator / "host"
    flags = [f"-DCUDA_ON_CPU_RACES={int(races)}", "-w", *defines]
    return [agentforge_cpp.compiler(), *_COMMON, *_CHECKED, *flags, f"-I{host}", f"-I{emulator}", *includes,
            "-include", "host.h", "-shared", "-x", "c++", source, "-x", "none", scheduler, "-o", output,
            f"-Wl,--version-script={host / 'exports.map'}", *libraries, "-ldl", "-lm"]  # fmt: skip
