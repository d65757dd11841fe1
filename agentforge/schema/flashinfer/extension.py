"""Solutions of the schema that are entered in C++ or CUDA C++, as one Python file that compiles them.

The file calls PyTorch's `load_inline` on all sources as one translation unit, so that it is judged as other
files of this kind are: compiled on a GPU, and emulated without one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError

EXTENSION_FILE = "agentforge_extension.py"
_CUDA, _CPP = (".cu",), (".cpp", ".cc", ".cxx", ".c")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*$', re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*$", re.MULTILINE)
_BINDING = """

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("{function}", &{function}); }}
"""
_FILE = '''"""Compiles the solution and enters its function; written by AgentForge."""

from torch.utils.cpp_extension import load_inline

_SOURCE = {source}

{function} = load_inline(
    name="agentforge_solution",
    cpp_sources={cpp},
    {cuda}extra_cflags={cflags!r},
    extra_ldflags={ldflags!r},
).{function}
'''


def is_extension(entry_point: str) -> bool:
    """Whether an entry point, `file::function`, lies in a C++ or CUDA C++ file."""
    return entry_point.partition("::")[0].endswith(_CUDA + _CPP)


def extension_file(solution: Mapping[str, Any]) -> tuple[str, bool]:
    """Text of `EXTENSION_FILE`, and whether it contains CUDA C++.

    Raises:
        UsageError: its function is bound by something other than PyTorch.
    """
    spec = solution["spec"]
    binding = spec.get("binding") or ("torch" if "languages" in spec else "tvm-ffi")
    if binding != "torch":
        raise UsageError(
            f"solution {solution['name']} is bound by {binding}: only PyTorch's binding is read, and Python"
        )
    files = {source["path"]: source["content"] for source in solution["sources"]}
    cuda = any(path.endswith(_CUDA) for path in files)
    function = spec["entry_point"].partition("::")[2]
    unit = _one_unit(files)
    if "PYBIND11_MODULE" not in unit:
        unit += _BINDING.format(function=function)
    options = spec.get("compile_options") or {}
    flags = f"cuda_sources=_SOURCE,\n    extra_cuda_cflags={list(options.get('cuda_cflags') or [])!r},\n    "
    text = _FILE.format(
        source=_literal(unit),
        function=function,
        cpp='""' if cuda else "_SOURCE",
        cuda=flags if cuda else "",
        cflags=list(options.get("cflags") or []),
        ldflags=list(options.get("ld_flags") or []),
    )
    return text, cuda


def _one_unit(files: Mapping[str, str]) -> str:
    """All sources one below the other, CUDA first, each with the solution's own headers in it once."""
    seen: set[str] = set()

    def read(path: str) -> str:
        seen.add(path)
        return _INCLUDE.sub(lambda match: include(path, match), _ONCE.sub("", files[path]))

    def include(path: str, match: re.Match[str]) -> str:
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1]))
        found = next((p for p in (beside, match[1]) if p in files), None)
        if found is None:
            return match[0]
        return "" if found in seen else read(found)

    units = [path for kind in (_CUDA, _CPP) for path in sorted(files) if path.endswith(kind)]
    return "\n".join(read(path) for path in units if path not in seen)


def _literal(text: str) -> str:
    """A Python literal, over several lines if possible, so that messages name useful ones."""
    plain = text.isascii() and "'''" not in text and not text.endswith(("\\", "'")) and "\r" not in text
    return f"r'''{text}'''" if plain else repr(text)
