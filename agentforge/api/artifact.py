"""`agentforge.load`: an artifact's folder, for modules of the kind that it was made for."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agentforge.problems.copies import copied
from agentforge.schema import MachineError, TargetError, UsageError, content_hash, expanded
from agentforge.whole_file import only_a_kernel

if TYPE_CHECKING:
    import torch

M = TypeVar("M", bound="torch.nn.Module")


def load(path: str | os.PathLike[str]) -> LoadedArtifact:
    """Open an artifact that a run wrote. Its code is imported: open only artifacts that you trust.

    Args:
        path: the artifact's folder, with `plan.json`.

    Raises:
        UsageError: there is no artifact, or it is that of a run which began with a kernel.

    Example:
        >>> fast = agentforge.load("artifact").optimize(model)
    """
    return LoadedArtifact(expanded(path))


class LoadedArtifact:
    """An artifact's folder. `optimize` gives a module its kernels.

    Attributes:
        path: the folder, absolute.
        mode: what runs in the optimized call: `kernels`, `kernels+compile`, `compile`, `eager`, ...
        report: the content of `report.json`: speedups, kernels, environment.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.mode: str = json.loads((self.path / "plan.json").read_text(encoding="utf-8"))["mode"]
            self.report: dict[str, Any] = json.loads((self.path / "report.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(
                only_a_kernel(path)
                or f"{path} is no artifact: give the folder with plan.json and report.json that a run wrote"
            ) from error
        self._package = _import(self.path)

    def optimize(self, model: M, *, inplace: bool = False) -> M:
        """A module that runs the artifact's kernels for calls like the one that it was made for.

        The result has the same class hierarchy and state_dict keys as `model` and shares its parameters and
        buffers, so that in-place updates show in both. Cast or move `model` before: `half()` or `to()` of
        either changes the parameters of both and the buffers of one. Other calls run the original forward.

        Args:
            model: a module that is built like the one that the artifact was made for.
            inplace: change and return `model` itself.

        Raises:
            UsageError: `model` is no module.
            TargetError: the module is built differently.
            MachineError: a kernel cannot be loaded or built here.
        """
        import torch

        if not isinstance(model, torch.nn.Module):
            raise UsageError(f"give the nn.Module to optimize, not a {type(model).__name__}")
        chosen = model if inplace else twin(model)
        try:
            return self._package.optimize(chosen)
        except ValueError as error:
            raise TargetError(str(error)) from error
        except RuntimeError as error:
            raise MachineError(str(error)) from error

    def restore(self, model: M) -> M:
        """Give a module its original forward back, in place."""
        return self._package.restore(model)

    def calls(self) -> dict[str, int]:
        """How often each kernel ran in this process."""
        return dict(self._package.calls())

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self.path,)  # another process imports the folder

    def __repr__(self) -> str:
        return f"LoadedArtifact({str(self.path)!r}, mode={self.mode!r})"


def twin(model: M) -> M:
    """A copy of a module that shares all tensors with it: its own, and those in lists, tuples and dicts.

    It shares what cannot be copied too, such as Python modules.
    """
    return copied(model, share=lambda value: hasattr(value, "data_ptr"))


def _import(folder: Path) -> Any:
    """The folder as a package under a name of its own, loaded once for each content."""
    plan = (folder / "plan.json").read_text(encoding="utf-8")
    name = f"agentforge_artifact_{content_hash([str(folder), plan])}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None or not (folder / "__init__.py").is_file():
        raise UsageError(f"{folder} is no artifact: it has no __init__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
