"""Export a solution as ONE Python file in KernelBench's convention, with sources and run-time modules
embedded.
"""

from __future__ import annotations

import ast
import json
from typing import Any

from agentforge.schema import NOT_PYTHON, Solution

from .folder import MANIFEST, manifest_text, runtime_files

_FILES = "AGENTFORGE_FILES"

_HEAD = '''\
"""{title}

A solution in KernelBench's convention: `ModelNew` takes the place of `Model`. Its files are embedded below;
they are unpacked into a cache folder at first import; C++ among them is compiled there by g++ ($CXX), CUDA
C++ by NVRTC at the first launch. Written by AgentForge; it needs torch, and triton where kernels are in it.
"""

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

'''

_TAIL = '''

def _folder():
    """A folder of our own that holds the files; the hash in its name makes it safe to share."""
    digest = hashlib.sha256(repr(sorted(AGENTFORGE_FILES.items())).encode()).hexdigest()[:24]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if os.access(base if base.exists() else base.parent, os.W_OK):
        root = base / "agentforge" / "solutions"
    else:
        root = Path(tempfile.mkdtemp(prefix="agentforge-"))
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = root / digest
    if not folder.exists():
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
        for name, text in AGENTFORGE_FILES.items():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        try:
            os.rename(scratch, folder)
        except OSError:
            shutil.rmtree(scratch, ignore_errors=True)
            if not folder.exists():  # no other process was first
                raise
    return folder


def _import(folder, file, name):
    spec = importlib.util.spec_from_file_location(name, folder / file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(folder))
    spec.loader.exec_module(module)
    sys.path.remove(str(folder))
    return module


_HERE = _folder()
{name} = _import(_HERE, {entry!r}, "agentforge_solution_" + _HERE.name).{cls}
'''


def export_single_file(solution: Solution, name: str = "ModelNew") -> str:
    """Source of one Python file that defines `ModelNew` and needs only torch (and g++ for C++).

    KernelBench's evaluator can run it by `exec`. `read_solution` reads it back as the same solution.

    Args:
        name: what the file calls the solution's entry.
    """
    files = {f.path: f.content for f in solution.sources} | {MANIFEST: manifest_text(solution)}
    embedded = files | runtime_files(solution.spec.language)
    lines = [f"    {name!r}: {_literal(text)}," for name, text in embedded.items()]
    tail = _TAIL.replace("{entry!r}", repr(solution.entry_file)).replace("{cls}", solution.entry_class)
    tail = tail.replace("{name}", name)
    title = "".join(c for c in solution.name if c.isprintable() and c not in "\\\"'")
    return "\n".join([_HEAD.format(title=title), f"{_FILES} = {{", *lines, "}", tail])


def _literal(text: str) -> str:
    """A Python literal of `text`, as a readable raw string if possible."""
    raw = f"r'''{text}'''"
    plain = "'''" not in text and "\r" not in text and "\0" not in text and not text.endswith(("\\", "'"))
    return raw if plain and text.isascii() and ast.literal_eval(raw) == text else repr(text)


def _is_files(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == [_FILES]


def embedded_files(tree: ast.Module) -> dict[str, str] | None:
    """The files embedded in an exported source; None if AgentForge did not write it."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and _is_files(node):
            try:
                files: Any = ast.literal_eval(node.value)
            except (TypeError, *NOT_PYTHON):
                return None
            if isinstance(files, dict) and all(isinstance(x, str) for kv in files.items() for x in kv):
                return files
    return None


def same_program(one: ast.Module, other: ast.Module) -> bool:
    """True if the code around the embedded files is the same in both exported sources."""

    def around(tree: ast.Module) -> list[str]:
        return [ast.dump(node) for node in tree.body[1:] if not _is_files(node)]

    return around(one) == around(other)


def parse_manifest(text: str) -> dict[str, Any]:
    """The manifest as a mapping; empty if it is unreadable."""
    try:
        record = json.loads(text)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
