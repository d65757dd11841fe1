"""Solutions that compile a torch extension at import (`load_inline` as in KernelBench, or `load`).

The first worker builds into the cache that the evaluation's next process gets.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from agentforge.schema import Solution

from .._base import PRELUDE

_PRELUDE = '''"""Imported before the solution, in the process that runs it."""

from agentforge.languages.python.extensions import install

install()
'''
_KEPT_BELOW = "TORCHINDUCTOR_CACHE_DIR"


def builds_at_import(solution: Solution) -> bool:
    """True if importing the solution compiles an extension."""
    return any("cpp_extension" in f.content for f in solution.sources if f.path.endswith(".py"))


def write_prelude(solution: Solution, folder: Path) -> None:
    """Write a prelude beside the solution's entry file that keeps its builds."""
    (folder / PurePosixPath(solution.entry_file).parent / PRELUDE).write_text(_PRELUDE)


def install() -> None:
    """Make `load_inline` and `load` load what an earlier process built from the same arguments."""
    from torch.utils import cpp_extension

    for name in ("load_inline", "load"):
        setattr(cpp_extension, name, _kept(getattr(cpp_extension, name)))


def _kept(plain: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def load(*args: Any, **kwargs: Any) -> Any:
        from torch.utils.cpp_extension import _import_module_from_library

        bound = signature.bind(*args, **kwargs)
        if bound.arguments.get("build_directory") or not os.environ.get(_KEPT_BELOW):
            return plain(*args, **kwargs)
        name: str = bound.arguments["name"]
        said = repr(sorted(bound.arguments.items())).encode() + _contents(bound.arguments.get("sources", []))
        folder = Path(os.environ[_KEPT_BELOW], "extensions", hashlib.sha256(said).hexdigest()[:16])
        if (folder / f"{name}.so").is_file():
            return _import_module_from_library(
                name, str(folder), bound.arguments.get("is_python_module", True)
            )
        folder.mkdir(parents=True, exist_ok=True)
        bound.arguments["build_directory"] = str(folder)
        return plain(*bound.args, **bound.kwargs)

    return load


def _contents(sources: str | Sequence[str]) -> bytes:
    """What lies in source files."""
    paths = [Path(source) for source in ([sources] if isinstance(sources, str) else sources)]
    return b"".join(path.read_bytes() for path in paths if path.is_file())
