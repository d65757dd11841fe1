"""Launch `extern "C" __global__` CUDA kernels on torch tensors.

    from agentforge_cuda import load
    kernels = load(__file__, "softmax.cu")
    kernels.softmax(x, out, rows, cols, grid=rows, block=256, shared=4 * cols)

GPU tensors are passed without a copy, and the kernel runs on torch's current stream. `load` uses the cubin
beside the source, or compiles it with NVRTC at first use. CPU tensors use the emulator if one was built
beside the source (AgentForge builds it on machines without a GPU); its speed means nothing. Each launch is
checked first: dtypes, device, contiguity, launch limits. Beside solutions this file is `agentforge_cuda.py`;
it needs the other `agentforge_*.py` there, the standard library and torch.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

if __package__:
    from agentforge.languages.cpp.shipped import agentforge_cpp as _cpp
    from agentforge.languages.cuda.shipped.agentforge_driver import Gpu, compile_here
    from agentforge.languages.cuda.shipped.agentforge_emulated import Emulator
    from agentforge.languages.cuda.shipped.agentforge_launches import CudaError, configuration
else:  # beside a solution
    import agentforge_cpp as _cpp  # type: ignore[import-not-found, no-redef]
    from agentforge_driver import Gpu, compile_here  # type: ignore[import-not-found, no-redef]
    from agentforge_emulated import Emulator  # type: ignore[import-not-found, no-redef]
    from agentforge_launches import CudaError, configuration  # type: ignore[import-not-found, no-redef]

__all__ = ["CudaError", "Kernel", "Library", "Strided", "load"]

VERSION = "1"
_SUFFIXES = (".cu", ".cuh", ".h", ".hh", ".hpp", ".inc")
Strided = _cpp.Strided


# -------------------------------------------------------------------------------------------- prototypes

_TYPES = {
    "float": "float[1-4]", "double": "double[1-4]", "int8_t": "char[1-4]", "uint8_t": "uchar[1-4]",
    "int16_t": "short[1-4]", "uint16_t": "ushort[1-4]", "int32_t": "int[1-4]", "uint32_t": "uint[1-4]|uint",
    "int64_t": "longlong[1-4]|long[1-4]", "uint64_t": "ulonglong[1-4]|ulong[1-4]",
    "half": "__half2?|half2", "bfloat16": "__nv_bfloat162?|nv_bfloat162?",
}  # fmt: skip
_ALIASES = [(re.compile(rf"\b(?:{spelling})\b"), name) for name, spelling in _TYPES.items()]
_NOISE = re.compile(
    r"__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)|__maxnreg__\s*\([^()]*\)|\b__grid_constant__\b"
)


def parse_kernels(source: str) -> dict[str, _cpp.Prototype]:
    """The `extern "C" __global__` functions of a CUDA source, by name; vector types become their elements."""
    text = _NOISE.sub(" ", source)
    for pattern, name in _ALIASES:
        text = pattern.sub(name, text)
    marked = re.sub(r"\b__global__\b", " kernel_ ", text)
    found = _cpp.parse_prototypes(re.sub(r"\bvoid\s+kernel_|\bkernel_\s+void\b", "__global__ void", marked))
    kernels = {}
    marked_names = set(re.findall(r"__global__\s+void\s+(\w+)\s*\(", _flat(marked)))
    for name, prototype in found.items():
        if name in marked_names:
            problem = "" if "result type" in prototype.problem else prototype.problem
            kernels[name] = prototype._replace(result="void", problem=problem)
    return kernels


def _flat(text: str) -> str:
    return " ".join(re.sub(r"\bvoid\s+kernel_|\bkernel_\s+void\b", "__global__ void", text).split())


# ------------------------------------------------------------------------------------------------- names


def object_name(source: Path, flags: Sequence[str], suffix: str) -> str:
    """File name of an object built from a source: `softmax.<hash>.<suffix>`.

    Args:
        source: the source; the hash covers it and the headers in its folder and below.
        flags: compiler flags.
        suffix: `sm_90.cubin`, `cpu.so`.
    """
    digest = hashlib.sha256(repr((VERSION, list(flags))).encode())
    if suffix.endswith(".so"):
        digest.update(_cpp.machine().encode())
    for path in _related(source):
        name = path.relative_to(source.parent).as_posix()
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return f"{source.stem}.{digest.hexdigest()[:16]}.{suffix}"


def _related(source: Path) -> list[Path]:
    """Sources and headers in a source's folder and below, except in a build's scratch folder."""
    hidden = re.compile(r"(?:^|/)\.")
    return sorted(
        path
        for path in source.parent.rglob("*")
        if path.suffix in _SUFFIXES
        and path.is_file()
        and not hidden.search(path.relative_to(source.parent).as_posix())
    )


_SPECIFIC = re.compile(r"\bwgmma\b|\bsetmaxnreg\b|\btcgen05\b|agentforge:\s*arch-specific", re.I)
_TARGET_FLAGS = ("--target=", "--gpu-architecture=", "-arch=")


def named_targets(flags: Sequence[str]) -> list[str]:
    """Targets in the flags, such as `sm_90`."""
    return [f.split("=")[1] for f in flags if f.startswith(_TARGET_FLAGS)]


def _loads(target: str, capability: tuple[int, int]) -> bool:
    """True if a GPU loads a cubin for the target: of its major version, and of no later minor one."""
    match = re.fullmatch(r"sm_(\d+)(\d)f?", target)
    return match is not None and int(match[1]) == capability[0] and int(match[2]) <= capability[1]


def target_of(source: Path, flags: Sequence[str], capability: tuple[int, int], text: str = "") -> str:
    """Target to compile for: `sm_90`, or `sm_90a` for architecture-specific instructions.

    A target that the flags name for the capability comes first, then one that they name alone and that a GPU
    of this capability can load. `sm_90a` is used if the kernel or a header contains such instructions or
    `// agentforge: arch-specific`.

    Args:
        text: a kernel's code if it lies in a string of a Python file.
    """
    named = list(dict.fromkeys(named_targets(flags)))
    number = capability[0] * 10 + capability[1]
    fitting = [target for target in named if target.rstrip("af") == f"sm_{number}"]
    if fitting or (len(named) == 1 and _loads(named[0], capability)):
        return (fitting or named)[-1]
    texts = (text, *(path.read_text() for path in _related(source))) if number >= 90 else ()
    specific = any(map(_SPECIFIC.search, texts))
    return f"sm_{number}{'a' if specific else ''}"


def compiler_flags(flags: Sequence[str]) -> list[str]:
    """Flags without those that name a target."""
    return [f for f in flags if not f.startswith(_TARGET_FLAGS)]


# ----------------------------------------------------------------------------------------------- launches


def _place(prototype: _cpp.Prototype, index: int) -> str:
    """An argument in words, for errors."""
    parameter = prototype.parameters[index]
    stars = "*" if parameter.pointer else ""
    return f"argument {index + 1} ({parameter.type}{stars} {parameter.name}) of {prototype.name}"


def _tensor(value: Any, prototype: _cpp.Prototype, index: int) -> torch.Tensor | None:
    """The tensor of a pointer argument, checked except for its device."""
    if value is None:
        return None
    strided = isinstance(value, Strided)
    tensor = value.tensor if strided else value
    if not isinstance(tensor, torch.Tensor):
        where = _place(prototype, index)
        raise TypeError(f"{where} must be a torch.Tensor or None, not {type(value).__name__}")
    allowed = _cpp._DTYPES[prototype.parameters[index].type]
    if allowed and tensor.dtype not in allowed:
        names = " or ".join(str(d) for d in allowed)
        raise TypeError(f"{_place(prototype, index)} must be {names}, not {tensor.dtype}")
    if tensor.layout is not torch.strided or tensor.is_neg() or tensor.is_conj():
        raise TypeError(f"{_place(prototype, index)} must be a plain dense tensor")
    if not (strided or tensor.is_contiguous()):
        raise ValueError(
            f"{_place(prototype, index)} is not contiguous "
            f"(shape {tuple(tensor.shape)}, strides {tensor.stride()}); "
            "call contiguous(), or wrap it in Strided and pass its strides"
        )
    return tensor


class Kernel:
    """One kernel of a source; call it with its arguments and `grid=`, `block=`, `shared=`."""

    def __init__(self, library: Library, prototype: _cpp.Prototype) -> None:
        self._library = library
        self._prototype = prototype
        self.__name__, self.__doc__ = prototype.name, str(prototype)

    def __call__(
        self,
        *arguments: Any,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        shared: int = 0,
    ) -> None:
        """Launch the kernel.

        Args:
            arguments: one per parameter: tensors for pointers (None for null), numbers otherwise.
            grid: blocks, one to three sizes.
            block: threads per block, one to three sizes.
            shared: bytes of dynamic shared memory per block.

        Raises:
            TypeError, ValueError, OverflowError: an argument does not match its parameter.
            CudaError: the launch is out of range, or failed.
        """
        sizes = configuration(grid, block, shared)
        tensors, values = self._values(arguments)
        device = self._device(tensors)
        _cpp.count(self._prototype.name)
        if device.type == "cuda":
            self._library.on_gpu(device).launch(self._prototype.name, sizes, values)
        else:
            self._library.emulator().launch(self._prototype.name, sizes, values, tensors)

    def _values(self, arguments: Sequence[Any]) -> tuple[list[torch.Tensor | None], list[Any]]:
        """Tensors of the pointer parameters, and all arguments as C values."""
        prototype = self._prototype
        if prototype.problem:
            raise TypeError(f"{prototype.name} cannot be launched from Python: {prototype.problem}")
        if len(arguments) != len(prototype.parameters):
            raise TypeError(
                f"{prototype.name} takes {len(prototype.parameters)} arguments, "
                f"not {len(arguments)}: {prototype}"
            )
        tensors: list[torch.Tensor | None] = []
        values: list[Any] = []
        for index, (parameter, value) in enumerate(zip(prototype.parameters, arguments, strict=True)):
            if parameter.pointer:
                tensors.append(_tensor(value, prototype, index))
                values.append(ctypes.c_void_p(tensors[-1].data_ptr() if tensors[-1] is not None else 0))
            elif parameter.type in ("float", "double"):
                if isinstance(value, torch.Tensor) or not isinstance(value, int | float):
                    where = _place(prototype, index)
                    raise TypeError(f"{where} must be a number, not {type(value).__name__}")
                values.append(_cpp._SCALARS[parameter.type](value))
            else:
                values.append(_cpp._SCALARS[parameter.type](_cpp._integer(value, prototype, index)))
        return tensors, values

    def _device(self, tensors: Sequence[torch.Tensor | None]) -> torch.device:
        devices = {t.device for t in tensors if t is not None}
        if len(devices) > 1:
            raise TypeError(
                f"the tensors of {self.__name__} are on several devices: {', '.join(map(str, devices))}"
            )
        if devices:
            return devices.pop()
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Library:
    """The kernels of one source as attributes; see `load`."""

    def __init__(self, source: Path, flags: Sequence[str]) -> None:
        self._source = source
        self._flags = list(flags)
        self._text = source.read_text()
        self._gpus: dict[int, Gpu] = {}
        self._emulator: Emulator | None = None
        self._prototypes = parse_kernels(self._text)
        for name, prototype in self._prototypes.items():
            setattr(self, name, Kernel(self, prototype))

    def __getattr__(self, name: str) -> Kernel:
        known = ", ".join(self.__dict__.get("_prototypes", {})) or "none"
        raise AttributeError(f'{self._source.name} has no extern "C" __global__ {name!r}; it has: {known}')

    def emulator(self) -> Emulator:
        """The emulator, which runs kernels on CPU tensors.

        Raises:
            CudaError: no emulator was built for this source.
        """
        if self._emulator is None:
            path = self._source.parent / object_name(self._source, compiler_flags(self._flags), "cpu.so")
            if not path.is_file():
                raise CudaError(
                    f"{self._source.name} needs tensors on an NVIDIA GPU: no emulator was built for this CPU"
                )
            self._emulator = Emulator(path, self._source.name, self._prototypes)
        return self._emulator

    def on_gpu(self, device: torch.device) -> Gpu:
        """The GPU's loaded kernels; compiled for it at first use."""
        index = device.index if device.index is not None else torch.cuda.current_device()
        if index not in self._gpus:
            target = target_of(self._source, self._flags, torch.cuda.get_device_capability(index))
            self._gpus[index] = Gpu(self._cubin(target), index, self._prototypes)
        return self._gpus[index]

    def _cubin(self, target: str) -> bytes:
        flags = compiler_flags(self._flags)
        path = self._source.parent / object_name(self._source, flags, f"{target}.cubin")
        if path.is_file():
            return path.read_bytes()
        kept = _cpp._writable_folder(self._source.parent) / path.name
        if not kept.is_file():
            draft = kept.with_name(f"{kept.name}.{os.getpid()}")
            draft.write_bytes(compile_here(self._source, target, flags))
            draft.replace(kept)  # at once: another process of a distributed run may read it already
        return kept.read_bytes()


_LIBRARIES: dict[tuple[Path, tuple[str, ...]], Library] = {}


def load(beside: str, name: str, *, flags: Iterable[str] = ()) -> Library:
    """Load the kernels of a CUDA C++ source.

    Args:
        beside: `__file__` of the caller.
        name: the source's path relative to the caller's folder.
        flags: compiler flags in addition to those of the nearest `solution.json`; `--target=sm_90a` names a
            target.

    Raises:
        FileNotFoundError: the source does not exist.
    """
    source = Path(beside).absolute().parent / name
    if not source.is_file():
        raise FileNotFoundError(f"no kernel source {source}")
    all_flags = (*_cpp.settings(source)[0], *flags)
    if (source, all_flags) not in _LIBRARIES:
        _LIBRARIES[source, all_flags] = Library(source, all_flags)
    return _LIBRARIES[source, all_flags]
