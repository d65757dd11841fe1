"""A live `nn.Module` becomes a `Target`: a source in KernelBench's convention that rebuilds it elsewhere.

A run works in other processes, and candidates run in a sandbox that sees no file of the user. So the module
travels in two parts. Its structure is a pickle inside the generated source: a class that can be imported goes
by its import path, a class of a script or a notebook by value (cloudpickle). Its weights are a file that only
trusted processes read; a candidate gets weights from the referee.
"""

from __future__ import annotations

import base64
import io
import os
import pickle
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import torch
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from agentforge.frontends._load import make_target
from agentforge.problems.describe import describe_tensor, distribution_of, flatten_tensors
from agentforge.problems.live_weights import recomputed
from agentforge.problems.own_modules import own_folder, shown_folders
from agentforge.profiling.graph.extract import STRIDED, draw_expression
from agentforge.schema import Target, TargetError, UsageError, content_hash

from ._live_source import SOURCE
from .kept_file import kept_file

MOST_STRUCTURE_BYTES = 11 << 20
"""Bytes of the compressed pickle without weights, at most: in base64 it is a part of 16 MiB of source."""
_PLAIN = (torch.Tensor, type(None), bool, int, float, str, list, tuple, dict)
"""Types of arguments, of which an artifact accepts no subclass."""
_INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_LARGE_BYTES = 1 << 16
"""Integers above this go beside the structure. Others stay in it, with their values: they may be indices."""
_FAR = 1 << 62
"""Integers of a weight are drawn from -2^62 to 2^62 at most: torch cannot draw from more."""
_DRAWN = (
    "its integers were drawn from the example's range of values: if they need an order or a sum, as offsets "
    "and lengths do, give a file with class Model, get_inputs() and get_init_inputs(); else run it once by "
    "hand and fix the error"
)


@dataclass(frozen=True)
class Structure:
    """A module without its weights."""

    data: bytes
    """Compressed pickle."""
    weights: Mapping[str, torch.Tensor]
    """Weights by name, see `_travels`: the module's own tensors."""
    modules: tuple[str, ...]
    """The user's own modules that the pickle imports."""
    root: str | None
    """Folder that those modules lie in."""


def live_target(
    model: torch.nn.Module, inputs: tuple[Any, ...] | Mapping[str, Any], device: str, folder: Path
) -> Target:
    """Describe a live module as a `Target`. Neither the module nor the inputs are changed or kept.

    Args:
        model: any module whose forward is deterministic in its present training modes.
        inputs: example inputs of one call: a tuple of positional arguments or a dict of keyword arguments.
        device: where it will run, for example `cpu`.
        folder: a folder for the weights is made below it.

    Raises:
        UsageError: the module or an input cannot be sent to another process; says what to do.
        TargetError: one forward in a process of its own fails.
        MachineError: the weights cannot be written.
    """
    check(model)
    draws = draw_inputs(inputs)
    found = structure(model)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(model).__name__).lower()
    weights = _keep(found.weights, folder)
    text = base64.b64encode(found.data).decode()
    source = SOURCE.format(
        name=type(model).__name__,
        listing=_listing(model),
        imports="".join(f"import {module}\n" for module in found.modules),
        weights=str(weights),
        data="\n".join(text[at : at + 100] for at in range(0, len(text), 100)),
        strided=STRIDED if "_strided(" in draws else "",
        inputs=draws,
    )
    tensors = list(flatten_tensors(inputs if isinstance(inputs, Mapping) else list(inputs), "inputs"))
    target = make_target(
        name=name,
        origin=f"live:{type(model).__name__}",
        source=source,
        import_root=found.root,
        device=device,
        advice=_DRAWN if any(t.dtype in _INTEGERS[1:] for _, t in tensors) else "",
    )
    return target.model_copy(update={"notes": (*target.notes, *_repeated(tensors))})


def _repeated(tensors: Sequence[tuple[str, torch.Tensor]]) -> Iterator[str]:
    """A note for each tensor that the example has in several places."""
    places: dict[int, list[str]] = {}
    for name, tensor in tensors:
        places.setdefault(id(tensor), []).append(name)
    for names in places.values():
        if len(names) > 1:
            yield (
                f"{', '.join(names[:-1])} and {names[-1]} are one tensor in the example, and several of the "
                "same shape here: code that asks whether they are one, such as PyTorch's fast path for "
                "attention, does not run, so your own call may be faster than eager is here; wrap the model "
                "in a module that takes the tensor once"
            )


def check(model: torch.nn.Module) -> None:
    """Say in one sentence what a module needs first.

    Raises:
        UsageError: it cannot be optimized as it is.
    """
    name = type(model).__name__
    if isinstance(model, torch.jit.ScriptModule):
        raise UsageError(f"{name} is a TorchScript module: pass the nn.Module that it was made from")
    if isinstance(model, torch.fx.GraphModule):
        raise UsageError(
            f"{name} is a torch.fx.GraphModule, and each copy of one has a class of its own: pass the "
            "nn.Module that it was traced from, or a module that calls it"
        )
    if any(map(is_lazy, (*model.parameters(), *model.buffers()))):
        raise UsageError(f"{name} has lazy parameters without a shape: call it once before you optimize it")
    acting = [type(m).__name__ for m in model.modules() if m.training and _differs(m)]
    if acting:
        raise UsageError(
            f"{name} is in training mode, and {acting[0]} acts differently there: call model.eval() first"
        )


def _differs(module: torch.nn.Module) -> bool:
    if isinstance(module, torch.nn.modules.dropout._DropoutNd):
        return module.p > 0
    if isinstance(module, torch.nn.RNNBase):
        return module.dropout > 0 and module.num_layers > 1
    if isinstance(module, torch.nn.MultiheadAttention):
        return module.dropout > 0
    return isinstance(module, torch.nn.modules.batchnorm._BatchNorm | torch.nn.RReLU)


def draw_inputs(inputs: tuple[Any, ...] | Mapping[str, Any]) -> str:
    """Python that draws arguments like the example's: same shapes, dtypes, strides and ranges of values.

    Raises:
        UsageError: an argument is neither a tensor, a plain container of tensors, nor a plain scalar.
    """
    if isinstance(inputs, Mapping):
        return _literal("inputs", dict(inputs))
    return _literal("inputs", list(inputs))


def _literal(name: str, value: Any) -> str:
    given = f"{name} is a {type(value).__name__}"
    kind: type | None = next((kind for kind in _PLAIN if isinstance(value, kind)), None)
    if isinstance(value, Mapping):
        kind = dict
    if kind is None or hasattr(value, "_fields"):
        raise UsageError(f"{given}: pass tensors, lists, tuples or dicts of them, or plain numbers")
    if type(value) not in (kind, torch.nn.Parameter):
        raise UsageError(f"{given}, and no kernel runs for that: make it a plain {kind.__name__}")
    if kind is torch.Tensor:
        try:
            return draw_expression(describe_tensor(name, value))
        except TargetError as error:
            raise UsageError(f"{name}: {error}") from error
    if kind is float and not -float("inf") < value < float("inf"):
        return f'float("{value}")'
    if kind is dict:
        items = (f"{_key(name, key)}: {_literal(f'{name}.{key}', item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if kind in (list, tuple):
        items = (_literal(f"{name}[{index}]", item) for index, item in enumerate(value))
        text = ", ".join(items)
        return f"[{text}]" if kind is list else f"({text}{',' if value else ''})"
    return repr(value)


def _key(name: str, key: Any) -> str:
    """A key of a dict; a member of an enumeration of strings finds what its string does."""
    return str.__repr__(key) if isinstance(key, str) else _literal(f"a key of {name}", key)


def structure(model: torch.nn.Module) -> Structure:
    """Pickle a module without its weights, and find the user's own modules that the pickle needs.

    Raises:
        UsageError: something in it cannot be pickled, it is too large without its weights, or elements of a
            weight share memory.
    """
    weights = {name: tensor for name, tensor in _tensors(model) if _travels(tensor)}
    name = type(model).__name__
    if overlapping := next((weight for weight, tensor in weights.items() if _overlaps(tensor)), None):
        raise UsageError(
            f"elements of {overlapping} in {name} share memory, as after expand(), so no values can be "
            "loaded into it: call contiguous() on it first"
        )
    try:
        pickled, seen = _dump(model, weights)
        roots = _roots(seen)
        others = [module for module, root in roots.items() if root != next(iter(roots.values()))]
        if others:  # one folder can be on the path of a sandboxed process: the rest travels by value
            with _by_value(others):
                pickled, seen = _dump(model, weights)
            roots = {module: root for module, root in _roots(seen).items() if module not in others}
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{name} cannot be sent to another process ({type(error).__name__}: {why}): remove that "
            'attribute, or put the class into a file and pass "file.py:ClassName"'
        ) from error
    data = zlib.compress(pickled, 6)
    if len(data) > MOST_STRUCTURE_BYTES:
        raise UsageError(
            f"{name} has {len(data) >> 20} MiB that are neither parameters nor saved buffers, or are sparse "
            f"or quantized; {MOST_STRUCTURE_BYTES >> 20} MiB is the most: make large tensors dense buffers "
            'that are saved (register_buffer), or put the class into a file and pass "file.py:ClassName"'
        )
    return Structure(data, weights, tuple(roots), next(iter(roots.values()), None))


def _tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """What `load_state_dict` gives to a candidate: parameters, and the buffers that are saved."""
    yield from model.named_parameters()
    unsaved = {id(m._buffers.get(name)) for m in model.modules() for name in m._non_persistent_buffers_set}
    yield from ((name, buffer) for name, buffer in model.named_buffers() if id(buffer) not in unsaved)


def _travels(tensor: torch.Tensor) -> bool:
    """Whether a weight goes beside the structure: a dense one of numbers, but no few integers."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        return False
    if tensor.dtype in _INTEGERS:
        return tensor.nbytes > _LARGE_BYTES
    return tensor.is_floating_point() or tensor.is_complex()


def _overlaps(tensor: torch.Tensor) -> bool:
    """Whether elements of a dense tensor may share memory."""
    if not tensor.numel():
        return False
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _dump(model: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> tuple[bytes, set[str]]:
    """The pickle, and the names of all modules that it imports."""
    large = [tensor for tensor in recomputed(model) if tensor.nbytes > _LARGE_BYTES]
    described: dict[int, tuple[Any, ...]] = {id(tensor): ("recomputed",) for tensor in large}
    described |= {id(tensor): _describe(name, tensor) for name, tensor in weights.items()}
    stream = io.BytesIO()
    pickler = _Pickler(stream, described)
    pickler.dump(model)
    return stream.getvalue(), pickler.modules


class _Pickler(cloudpickle.Pickler):
    """Replaces weights by their descriptions and notes which modules are imported."""

    def __init__(self, stream: io.BytesIO, weights: Mapping[int, tuple[Any, ...]]) -> None:
        super().__init__(stream, protocol=pickle.DEFAULT_PROTOCOL)
        self._weights = weights
        self.modules: set[str] = set()

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        if value is _parametrized:
            return ()
        return self._weights.get(id(value)) if isinstance(value, torch.Tensor) else None

    def reducer_override(self, value: Any) -> Any:
        original = _before_parametrizations(value)
        if original is not None:  # the derived class exists in this process alone and refuses to be pickled
            return _parametrized, (original, [*value.parametrizations]), original.__getstate__(value)
        found = super().reducer_override(value)
        if isinstance(value, ModuleType):
            self.modules.add(value.__name__)
        elif found is NotImplemented and (isinstance(value, type) or callable(value)):
            self.modules.add(getattr(value, "__module__", None) or "builtins")
        return found


def _parametrized(kind: type, names: list[str]) -> None:
    """In the pickle, for the function of the template that has this name."""


def _before_parametrizations(value: Any) -> Any:
    """The class that `torch.nn.utils.parametrize` derived a module's class from; None if it did not."""
    for cls in type(value).__mro__ if isinstance(value, torch.nn.Module) else ():
        if getattr(vars(cls).get("__getstate__"), "__module__", "") == parametrize.__name__:
            return cls.__bases__[0]
    return None


def _describe(name: str, tensor: torch.Tensor) -> tuple[Any, ...]:
    """What a weight is rebuilt from if its value is not there: see the template's `_weight`."""
    like = distribution_of(tensor)
    kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"
    low, spread = (like.a, like.b) if like.kind == "normal" else (like.a, like.b - like.a)
    if like.kind == "integers":
        low = min(max(int(like.a), -_FAR), _FAR - 1)
        spread = max(min(int(like.b), _FAR) - low, 1)
    return (
        name,
        kind,
        tuple(tensor.shape),
        tuple(tensor.stride()),
        str(tensor.dtype).removeprefix("torch."),
        tensor.requires_grad,
        (like.kind, low, spread),
    )


def _roots(modules: set[str]) -> dict[str, str]:
    """The user's own modules among these, and the folder on `sys.path` that each is found in."""
    found, shown = {}, shown_folders()
    for name in sorted(modules):
        module = sys.modules.get(name)
        top = sys.modules.get(name.partition(".")[0])
        file = getattr(top, "__file__", None) or next(iter(getattr(top, "__path__", ())), None)
        if module is None or file is None or name == "__main__":
            continue
        if folder := own_folder(file, shown, package=hasattr(top, "__path__")):
            found[name] = folder
    return found


@contextmanager
def _by_value(names: list[str]) -> Iterator[None]:
    modules = [sys.modules[name] for name in names]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _keep(weights: Mapping[str, torch.Tensor], folder: Path) -> Path:
    """Write the weights to a file that is named by their content; readable by this user alone.

    Raises:
        MachineError: the file cannot be written.
    """
    held = {name: _compact(tensor) for name, tensor in weights.items()}
    stream = io.BytesIO()
    torch.save(held, stream)
    parts = [[name, content_hash([_checksum(tensor)])] for name, tensor in held.items()]
    path = folder.absolute() / "live" / f"{content_hash(parts)}.pt"
    try:
        os.utime(path)  # `runs rm` leaves new files alone
    except OSError:
        with kept_file(path, "the model's weights") as draft:
            draft.touch(mode=0o600)
            draft.write_bytes(stream.getbuffer())
    return path


def _compact(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the CPU with a storage of its own; strides are kept, also those that leave gaps."""
    copied = tensor.detach().to("cpu", copy=True)
    if copied.stride() == tensor.stride():
        return copied
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(copied)


def _checksum(tensor: torch.Tensor) -> list[Any]:
    flat = tensor.contiguous().view(-1).view(torch.uint8) if tensor.numel() else tensor.view(-1)
    layout = [str(tensor.dtype), list(tensor.shape), list(tensor.stride())]
    return [*layout, zlib.crc32(flat.numpy()), zlib.adler32(flat.numpy())]


def _listing(model: torch.nn.Module) -> str:
    """The module as it prints itself, as a comment for readers of the generated source."""
    lines = repr(model).splitlines()
    shown = lines if len(lines) <= 60 else [*lines[:59], "..."]
    return "\n".join(f"# {line}" for line in shown)
