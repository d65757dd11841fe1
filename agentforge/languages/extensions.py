"""Solutions that compile an extension of torch when they are imported (`load_inline`), as KernelBench's do.

The compiler takes a minute with torch's headers. What the worker that imports such a solution first has built
goes where compiled code is handed on to the evaluation's next process, which then loads it.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
from pathlib import Path, PurePosixPath
from typing import Any

from agentforge.schema import Solution

from ._base import PRELUDE

_PRELUDE = '''"""Imported before the solution, in the process that runs it."""

from agentforge.languages.extensions import install

install()
'''
_KEPT_BELOW = "TORCHINDUCTOR_CACHE_DIR"


def builds_at_import(solution: Solution) -> bool:
    """Whether importing it compiles an extension."""
    return any("load_inline" in f.content for f in solution.sources if f.path.endswith(".py"))


def write_prelude(solution: Solution, folder: Path) -> None:
    """Beside the entry file of a solution in `folder`: its builds are kept."""
    (folder / PurePosixPath(solution.entry_file).parent / PRELUDE).write_text(_PRELUDE)


def install() -> None:
    """Let `load_inline` load in this process what an earlier one built of the same arguments."""
    from torch.utils import cpp_extension

    plain = cpp_extension.load_inline
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def load_inline(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        if given.arguments.get("build_directory") or not os.environ.get(_KEPT_BELOW):
            return plain(*args, **kwargs)
        name: str = given.arguments["name"]
        digest = hashlib.sha256(repr(sorted(given.arguments.items())).encode()).hexdigest()[:16]
        folder = Path(os.environ[_KEPT_BELOW], "extensions", digest)
        if (folder / f"{name}.so").is_file():
            is_module = given.arguments.get("is_python_module", True)
            return cpp_extension._import_module_from_library(name, str(folder), is_module)
        folder.mkdir(parents=True, exist_ok=True)
        given.arguments["build_directory"] = str(folder)
        return plain(*given.args, **given.kwargs)

    cpp_extension.load_inline = load_inline
