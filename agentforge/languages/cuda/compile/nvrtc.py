"""Compile CUDA C++ for a GPU with NVRTC, in a process that needs only the standard library.

    python nvrtc.py '{"toolkit": {...}, "jobs": [{"source": "kernel.cu", "name": "kernel.cu",
                      "output": "kernel.cubin", "target": "sm_90", "options": []}]}'

writes each job's cubin and `<output>.json` with the compiler's `code` and `log`. This file also ships with
solutions, so that machines with a GPU can compile at first use.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

OPTIONS = (
    "-std=c++17",
    "-lineinfo",
    "-default-device",
    "--ptxas-options=--verbose",
    "--extra-device-vectorization",
)
_PRE_INCLUDE = "--pre-include=agentforge_standard.h"
_INTEGERS = "".join(
    f"typedef {sign}{base} {prefix}int{bits}_t;\n"
    for bits, base in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
    for sign, prefix in (("signed ", ""), ("unsigned ", "u"))
)
_LIMITS = "".join(
    f"#define {name} {value}\n"
    for name, value in (
        ("INT_MAX", "0x7fffffff"), ("INT_MIN", "(-INT_MAX - 1)"), ("UINT_MAX", "0xffffffff"),
        ("LLONG_MAX", "0x7fffffffffffffffLL"), ("CHAR_BIT", "8"), ("FLT_MAX", "3.402823466e+38f"),
        ("FLT_MIN", "1.175494351e-38f"), ("FLT_EPSILON", "1.192092896e-07f"),
        ("DBL_MAX", "1.7976931348623157e+308"), ("DBL_EPSILON", "2.2204460492503131e-16"),
        ("INT32_MAX", "INT_MAX"), ("UINT32_MAX", "UINT_MAX"), ("INT64_MAX", "LLONG_MAX"),
        ("INFINITY", "__int_as_float(0x7f800000)"),
        ("NAN", "__int_as_float(0x7fffffff)"), ("M_PI", "3.14159265358979323846"),
    )
)  # fmt: skip
_STANDARD = f"#pragma once\n{_INTEGERS}typedef unsigned long long uintptr_t;\n" + "".join(
    f"#ifndef {line.split()[1]}\n{line}\n#endif\n" for line in _LIMITS.splitlines()
)
_INCLUDE = '#pragma once\n#include "agentforge_standard.h"\n'
HEADERS: dict[str, str] = {
    "agentforge_standard.h": _STANDARD,
    **dict.fromkeys(
        ("cstdint", "stdint.h", "cstddef", "stddef.h", "climits", "limits.h", "cfloat", "float.h", "cmath",
         "math.h", "cstdio", "stdio.h", "cassert", "assert.h", "cuda_runtime.h", "cuda.h",
         "device_launch_parameters.h"),
        _INCLUDE,
    ),
}  # fmt: skip
"""Parts of the standard library that NVRTC lacks and kernels use: widths and limits, nothing to link."""


_PARTS = ("cuda_fp16.h", "crt/mma.h", "nv/target")
"""A header of each part that kernels include: run-time library, compiler and CCCL are separate packages."""


class Toolkit(NamedTuple):
    """Paths of NVRTC and CUDA's headers."""

    library: str
    builtins: str
    includes: tuple[str, ...]


def _layouts() -> Iterator[tuple[Path, list[Path]]]:
    """Folders with libnvrtc and with headers: pip packages first, then an installed toolkit."""
    for entry in sys.path:
        packages = Path(entry or ".") / "nvidia"
        if packages.is_dir():
            for folder in sorted(packages.glob("cu[0-9]*"), reverse=True):
                yield folder / "lib", [folder / "include", folder / "include/cccl"]
            yield (
                packages / "cuda_nvrtc/lib",
                [packages / "cuda_runtime/include", packages / "cuda_cccl/include"],
            )
    from shutil import which  # imported here: it would take half of a compiler process's start

    nvcc = which("nvcc")
    beside = str(Path(nvcc).resolve().parents[1]) if nvcc else ""
    for name in filter(None, (os.environ.get("CUDA_HOME"), beside, "/usr/local/cuda", "/opt/cuda")):
        yield Path(name) / "lib64", [Path(name) / "include", Path(name) / "include/cccl"]


def find_toolkit() -> Toolkit | None:
    """The first NVRTC on this machine, without loading it; None if there is none.

    Headers that its packages lack are taken from the next place: torch brings NVRTC without all of them.
    """
    headers: list[Path] = []
    missing = set(_PARTS)
    library: Path | None = None
    for libraries, includes in _layouts():
        if library is None:
            found = sorted(p for p in libraries.glob("libnvrtc.so.*") if "alt" not in p.name)
            library = found[0] if found else None
        found_here = {part for part in missing if any((p / part).is_file() for p in includes)}
        if found_here:
            headers += (p for p in includes if p.is_dir())
            missing -= found_here
    if library is None:
        return None
    builtins = sorted(p for p in library.parent.glob("libnvrtc-builtins.so.*") if "alt" not in p.name)
    return Toolkit(str(library), str(builtins[0]) if builtins else "", tuple(map(str, headers)))


class Compiled(NamedTuple):
    """Result of one compilation: a cubin (empty if it failed) and the compiler's output."""

    code: int
    log: str
    cubin: bytes


class Nvrtc:
    """The loaded library. Raises OSError if it cannot be loaded."""

    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit
        if toolkit.builtins:  # looked up by name, in folders that do not include pip's packages
            ctypes.CDLL(toolkit.builtins, ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(toolkit.library)

    @property
    def version(self) -> tuple[int, int]:
        """CUDA version, for example (13, 0)."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def compile(
        self,
        source: str,
        name: str,
        target: str,
        options: Sequence[str],
        instances: Sequence[str] = (),
        standard: bool = True,
    ) -> Compiled:
        """Compile one source to a cubin.

        Args:
            name: for messages; `#include "..."` is relative to it.
            instances: template instances such as `kernel<float>`; all are ignored if one is invalid.
            standard: provide `HEADERS`; False compiles as another user of NVRTC would.
        """
        program = ctypes.c_void_p()
        headers = HEADERS if standard else {}
        texts = (ctypes.c_char_p * len(headers))(*(t.encode() for t in headers.values()))
        names = (ctypes.c_char_p * len(headers))(*(n.encode() for n in headers))
        code = self._library.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), name.encode(), len(headers), texts, names
        )
        if code:
            return Compiled(code, f"nvrtc: error: {self._error(code)}", b"")
        try:
            folders = [f"--include-path={folder}" for folder in self._toolkit.includes]
            for instance in instances:
                self._library.nvrtcAddNameExpression(program, instance.encode())
            own = (*OPTIONS, _PRE_INCLUDE) if standard else OPTIONS
            listed = [o.encode() for o in (f"--gpu-architecture={target}", *own, *folders, *options)]
            code = self._library.nvrtcCompileProgram(
                program, len(listed), (ctypes.c_char_p * len(listed))(*listed)
            )
            if code and instances:
                return self.compile(source, name, target, options, standard=standard)
            log = self._take(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            if code and not log.strip():
                log = f"nvrtc: error: {self._error(code)}"
            return Compiled(code, log, b"" if code else self._take(program, "CUBIN"))
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _take(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        getattr(self._library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw[: size.value]

    def _error(self, code: int) -> str:
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        text: bytes = self._library.nvrtcGetErrorString(code)
        return text.decode()


def main(argv: Sequence[str]) -> int:
    """Run the jobs of the JSON in `argv[1]`; each outcome is written beside its output."""
    request: dict[str, Any] = json.loads(argv[1])
    nvrtc = Nvrtc(Toolkit(*request["toolkit"]))
    for job in request["jobs"]:
        source = Path(job["source"])
        done = nvrtc.compile(
            source.read_text(),
            job["name"],
            job["target"],
            job["options"],
            job.get("instances", ()),
            job.get("standard", True),
        )
        if done.cubin:
            Path(job["output"]).write_bytes(done.cubin)
        Path(job["output"] + ".json").write_text(json.dumps({"code": done.code, "log": done.log}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
