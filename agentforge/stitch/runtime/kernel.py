"""Load a kernel's folder and make a callable for each of its call sites."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from .layout import Layout, same_strides

_ACCESS_BYTES = 16
"""The widest access of a CUDA kernel. Elsewhere than at a multiple it ends the process's use of the GPU."""
_STRICT = ("cupy", "dlpack")
"""Words in the Python files of kernels that pass tensors by DLPack, which refuses those with a gradient."""


class Kernel:
    """One promoted kernel: a folder with a `ModelNew`, shared by all call sites of its region."""

    def __init__(self, folder: Path, entry: str, namespace: str, count: Callable[[str], None]) -> None:
        self.name = folder.name
        self.runs = 0
        self._count = count
        self._takes_aligned = _takes_aligned(folder / "solution.json")
        file, _, class_name = entry.partition("::")
        module = _import(folder / file, f"{namespace}_{folder.name}")
        forward: Callable[..., Any] = getattr(module, class_name)().eval().forward
        files = [path.read_text(errors="ignore") for path in folder.rglob("*.py")]
        strict = any(word in text for text in files for word in _STRICT)
        self._forward = detached(forward) if strict else forward

    def at(self, layouts: Sequence[Layout], is_tuple: bool) -> Callable[..., Any]:
        """Return a callable for call sites whose results have these layouts.

        A result with other strides is copied.

        Raises:
            RuntimeError: (from the callable) a result has another shape or dtype.
        """
        forward, count, name, takes_aligned = self._forward, self._count, self.name, self._takes_aligned

        def call(*tensors: torch.Tensor) -> Any:
            self.runs += 1
            count(name)
            if takes_aligned:
                tensors = tuple(map(_aligned, tensors))
            results = forward(*tensors)
            if not is_tuple:
                return _settle(results, layouts[0], name)
            return tuple(_settle(r, lay, name) for r, lay in zip(results, layouts, strict=True))

        return call


def _takes_aligned(manifest: Path) -> bool:
    """Whether a kernel may need inputs at aligned addresses: it is CUDA C++ or CuPy, and not the playbook's,
    which looks at addresses first."""
    if not manifest.is_file():
        return False
    about = json.loads(manifest.read_text())
    return about.get("language") in ("cuda", "cupy") and about.get("author") != "playbook"


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy if it begins elsewhere than at a multiple of 16 bytes."""
    if tensor.data_ptr() % _ACCESS_BYTES == 0:
        return tensor
    span = 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    memory = tensor.as_strided((span,), (1,)).clone()  # strides may be 0
    return memory.as_strided(tensor.shape, tensor.stride(), 0)


def detached(forward: Callable[..., Any]) -> Callable[..., Any]:
    """`forward` without the gradients of parameters, which the referee's inputs do not have."""

    def call(*tensors: torch.Tensor) -> Any:
        return forward(*(t.detach() if t.requires_grad else t for t in tensors))

    return call


def _settle(result: Any, layout: Layout, name: str) -> Any:
    if result.shape != layout.shape or result.dtype != layout.dtype:
        raise RuntimeError(
            f"kernel {name} returned {tuple(result.shape)} {result.dtype}, "
            f"not {layout.shape} {layout.dtype}; rebuild the artifact"
        )
    if result.stride() == layout.strides or same_strides(layout.shape, result.stride(), layout.strides):
        return result
    settled = torch.empty_strided(layout.shape, layout.strides, dtype=layout.dtype, device=result.device)
    return settled.copy_(result)


def opaque_operator(
    name: str, call: Callable[..., Any], inputs: int, layouts: Sequence[Layout], is_tuple: bool
) -> Any:
    """Register `call` as a custom operator; torch.compile neither traces into it nor breaks there."""
    arguments = ", ".join(f"Tensor x{i}" for i in range(inputs))
    results = ", ".join(["Tensor"] * len(layouts))
    schema = f"({arguments}) -> " + (f"({results})" if is_tuple else "Tensor")
    operator = torch.library.custom_op(name, call, mutates_args=(), schema=schema)

    def fake(*tensors: torch.Tensor) -> Any:
        made = tuple(tensors[0].new_empty_strided(lay.shape, lay.strides, dtype=lay.dtype) for lay in layouts)
        return made if is_tuple else made[0]

    operator.register_fake(fake)
    return operator


def on_its_gpu(forward: Callable[..., Any]) -> Callable[..., Any]:
    """`forward` with its tensors' GPU as the current one, on which Triton and CuPy launch."""

    def call(*tensors: torch.Tensor) -> Any:
        index = next((t.get_device() for t in tensors if t.is_cuda), -1)
        if index < 0 or index == torch.cuda.current_device():
            return forward(*tensors)
        with torch.cuda.device(index):
            return forward(*tensors)

    return call


def beside_inputs(
    forward: Callable[..., Any], first: int, constants: Sequence[torch.Tensor]
) -> Callable[..., Any]:
    """`forward` with its constants on the GPU of its other tensors.

    They load on the GPU that they were made on.

    Args:
        first: place of the first constant among the arguments.
    """
    last = first + len(constants)
    copies: dict[int, list[torch.Tensor]] = {}

    def call(*tensors: torch.Tensor) -> Any:
        others = (*tensors[:first], *tensors[last:])
        index = next((t.get_device() for t in others if t.is_cuda), -1)
        if index < 0:
            return forward(*tensors)
        if index not in copies:
            copies[index] = [c.to(f"cuda:{index}") if c.is_cuda else c for c in constants]
        return forward(*tensors[:first], *copies[index], *tensors[last:])

    return call


def _import(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} is missing from the artifact; copy the whole folder")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        package = error.name
        if package == "cupy":  # each CUDA version has a package of its own
            package = f"cupy-cuda{(torch.version.cuda or '13').partition('.')[0]}x"
        raise RuntimeError(
            f"kernel {path.parent.name} needs {error.name}; install it with: pip install {package}"
        ) from error
    return module


def provide_runtimes(folder: Path) -> ModuleType:
    """Make `import agentforge_cpp` and the other run-time modules find the artifact's copies.

    A process has one copy of each: warns if an artifact of another version brought it.

    Returns:
        The C++ run-time module, which counts the calls of all kernels.
    """
    sys.path.insert(0, str(folder))
    try:
        pairs = [(p, importlib.import_module(p.stem).__file__) for p in folder.glob("agentforge_*.py")]
    finally:
        sys.path.remove(str(folder))
    here = Path(__file__).parent
    pairs += [(p, str(here / p.name)) for p in (folder / here.name).glob("*.py")]
    for path, loaded in pairs:
        if loaded and not _same(path, Path(loaded)):
            warnings.warn(
                f"{folder} was written by another version of AgentForge than {Path(loaded).parent}, which "
                f"this process has loaded ({path.name} differs): its kernels run with the latter's runtime. "
                "Write the older artifact again, or load the two in different processes.",
                stacklevel=2,
            )
            break
    return sys.modules["agentforge_cpp"]


def _same(path: Path, loaded: Path) -> bool:
    try:
        return path.samefile(loaded) or path.read_bytes() == loaded.read_bytes()
    except OSError:  # what was loaded may be gone
        return True
