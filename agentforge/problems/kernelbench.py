"""KernelBench's file convention: `class Model` (or `ModelNew`), `get_inputs()`, `get_init_inputs()`.

Reference: Ouyang et al., KernelBench (2025), https://github.com/ScalingIntelligence/KernelBench.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from agentforge.schema import Definition, TargetError, UnsupportedTargetError
from agentforge.visible import shortened

from .generators import FIXED, seed_generators, seed_weights


@dataclass(frozen=True)
class Problem:
    """An imported reference."""

    module: ModuleType
    model_class: type[torch.nn.Module]
    get_inputs: Callable[..., Any]
    get_init_inputs: Callable[[], Any]

    @property
    def workloads(self) -> tuple[str, ...]:
        """What `get_inputs(workload)` may be given: the module's `workloads`; empty if it takes nothing.

        Raises:
            TargetError: they are not strings, or two are the same.
        """
        names = getattr(self.module, "workloads", ())
        if not (isinstance(names, (list, tuple)) and "workload" in signature(self.get_inputs).parameters):
            return ()
        if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
            said = shortened(f"workloads = {names!r}", 100)
            raise TargetError(f"{said}: write the names of workloads as strings, each a different one")
        return tuple(names)

    def of(self, workload: str) -> Problem:
        """The problem with the inputs of one of its `workloads`; empty for those that it has by default."""
        return replace(self, get_inputs=partial(self.get_inputs, workload=workload)) if workload else self

    def constructor_arguments(self) -> Any:
        """What `get_init_inputs()` gives under `FIXED`: a list, or a dict of keyword arguments."""
        seed_generators(FIXED)
        return self.get_init_inputs()

    def build(self, seed: int) -> torch.nn.Module:
        """Construct the model in eval mode, its weights drawn under `seed`."""
        init = self.constructor_arguments()
        seed_weights(seed)
        if isinstance(init, dict):
            return self.model_class(**init).eval()
        return self.model_class(*init).eval()

    def inputs(self, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of one forward, drawn under `seed`.

        `get_inputs()` returns a list or tuple of positional arguments; a dict is taken as keyword
        arguments, which KernelBench's own files never do.
        """
        seed_generators(seed)
        drawn = self.get_inputs()
        if isinstance(drawn, dict):
            return (), drawn
        if isinstance(drawn, (list, tuple)):
            return tuple(drawn), {}
        raise TargetError("get_inputs() must return a list of arguments (or a dict of keyword arguments)")


@contextmanager
def import_root(path: str | None) -> Iterator[None]:
    """Put `path` first on `sys.path` for the duration, and then last, for imports that functions make."""
    if path is None:
        yield
        return
    sys.path.insert(0, path)
    try:
        yield
    finally:
        if path in sys.path:
            sys.path.remove(path)
        if path not in sys.path:
            sys.path.append(path)


def import_source(source: str, name: str) -> ModuleType:
    """Execute Python source as module `name`, without arguments, with tracebacks that show its lines.

    Raises:
        whatever the source raises.
    """
    module = ModuleType(name)
    module.__file__ = f"<{name}>"
    linecache.cache[module.__file__] = (len(source), None, source.splitlines(True), module.__file__)
    sys.modules[name] = module
    arguments, sys.argv[1:] = sys.argv[1:], []  # a script may parse them, and these are not its own
    try:
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)
    finally:
        sys.argv[1:] = arguments
    return module


def remedy(source: str, error: BaseException, otherwise: str) -> str:
    """What the user can do about an error of a source, if that is known."""
    if isinstance(error, OSError) and "__file__" in source:
        return (
            "other processes run a copy of the source and have no file beside it: give the model itself to "
            "agentforge.optimize(model, inputs) in Python"
        )
    if isinstance(error, SystemExit):
        return (
            "it gets no arguments: give them defaults, or move what parses them below "
            "if __name__ == '__main__':"
        )
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "put an __init__.py into the folder of its package, or import without the dots"
    if isinstance(error, RuntimeError) and "does not require grad" in str(error):
        return "forward runs without gradients here: wrap the part that needs them in torch.enable_grad()"
    return otherwise


def check_downloaded(name: str, error: BaseException) -> None:
    """Say which model an error of a source is about that Hugging Face's libraries could not read.

    Raises:
        UnsupportedTargetError: the error is of this kind.
    """
    if not isinstance(error, OSError):
        return
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for parameter in ("pretrained_model_name_or_path", "repo_id"):
            model = frame.f_locals.get(parameter)
            if isinstance(model, str) and not Path(model).is_dir():
                raise UnsupportedTargetError(
                    f"{name} needs {model}, and the cache of Hugging Face lacks it: run `hf download {model}`"
                ) from error


def load_problem(definition: Definition) -> Problem:
    """Import a definition's reference into this process. Only for trusted source: the user's own model.

    Raises:
        UnsupportedTargetError: it needs a model that is not in the cache of Hugging Face.
        TargetError: it does not import, or lacks `Model`, `get_inputs` or `get_init_inputs`.
    """
    name = f"agentforge_reference_{definition.hash}"
    with import_root(definition.import_root):
        try:
            module = import_source(definition.reference, name)
        except (Exception, SystemExit) as error:
            check_downloaded(definition.name, error)
            raise TargetError(
                f"{definition.name} does not import: {type(error).__name__}: {shortened(str(error))}; "
                f"{remedy(definition.reference, error, 'run it with python first and fix it')}"
            ) from error
    model_class = getattr(module, "Model", None)
    if not (isinstance(model_class, type) and issubclass(model_class, torch.nn.Module)):
        raise TargetError(
            f"{definition.name} has no class Model(torch.nn.Module); name one: file.py:ClassName"
        )
    for function in ("get_inputs", "get_init_inputs"):
        if not callable(getattr(module, function, None)):
            raise TargetError(
                f"{definition.name} has no {function}(); add it, or use file.py:ClassName --input-shape ..."
            )
    return Problem(module, model_class, module.get_inputs, module.get_init_inputs)
