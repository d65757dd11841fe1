"""Read solutions from disk: a `ModelNew` file, a folder, or an exported single file."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentforge.schema import BuildSpec, Solution, SourceFile, UsageError

from .._base import PRELUDE
from ..lookup import all_languages, kernel_suffixes
from .folder import MANIFEST, runtime_files
from .single_file import embedded_files, export_single_file, parse_manifest, same_program

_MAX_FILE_BYTES = 8 << 20
_MAX_FILES = 512
_BINARY_SUFFIXES = (".so", ".o", ".pyc", ".a", ".cubin")
_ENTRY = "ModelNew"


def read_solution(path: Path, definition_hash: str, *, author: str = "person") -> Solution:
    """Read a solution of a definition, without running any of it.

    Args:
        path: a Python file with `class ModelNew`, or a folder with such a file and the sources that it loads.
        author: used if no manifest names one.

    Raises:
        UsageError: it is missing, empty, too large, not text, not Python, or defines no `ModelNew`.
    """
    path = Path(path)
    try:
        if path.is_dir():
            files, entry = _folder(path)
        elif path.is_file():
            exported = _exported(path, definition_hash, author)
            if exported is not None:
                return exported
            files, entry = _file(path)
        elif path.exists():
            raise UsageError(f"{path} is neither a file nor a folder; give a .py file with class ModelNew")
        else:
            raise UsageError(f"{path} does not exist; give a .py file with class ModelNew, or its folder")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    return _solution(path, files, entry, definition_hash, author)


def _text(path: Path) -> str:
    size = path.stat().st_size
    if size > _MAX_FILE_BYTES:
        raise UsageError(
            f"{path} has {size / 2**20:.0f} MiB; a solution's source has at most {_MAX_FILE_BYTES >> 20} MiB"
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text; give source code, not a binary file") from error
    if "\0" in text:
        raise UsageError(f"{path} contains NUL characters; give source code, not a binary file")
    return text


def _parse(path: Path, text: str) -> ast.Module:
    if not text.strip():
        raise UsageError(f"{path} is empty; it must define class ModelNew")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, str(path))
    except SyntaxError as error:
        raise UsageError(f"{path} is not Python: line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path} is not Python: {str(error) or type(error).__name__}") from error


def _bound(body: list[ast.stmt]) -> set[str]:
    """Names that statements bind at module level; `*` for a star import."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        else:
            for field in ("body", "orelse", "finalbody"):
                names |= _bound(getattr(node, field, []) or [])
            for handler in getattr(node, "handlers", []):
                names |= _bound(handler.body)
    return names


def _imports_runtime(tree: ast.Module) -> bool:
    found = {name.split(".")[0] for name in _imported(tree)}
    return any(info.suffixes and found.intersection(info.imports) for _, info in all_languages())


def _imported(tree: ast.Module) -> set[str]:
    """Full names of all imported modules."""
    modules = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    return modules | {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}


def _exported(path: Path, definition: str, author: str) -> Solution | None:
    """The solution inside a file written by `export_single_file`; None for other files."""
    tree = _parse(path, _text(path))
    embedded = embedded_files(tree)
    if embedded is None:
        return None
    try:
        solution = _solution(path, embedded, "", definition, author)
    except UsageError:
        return None
    return solution if same_program(tree, ast.parse(export_single_file(solution))) else None


def _file(path: Path) -> tuple[dict[str, str], str]:
    text = _text(path)
    tree = _parse(path, text)
    if not {_ENTRY, "*"} & _bound(tree.body):
        raise UsageError(f"{path} defines no class {_ENTRY}; name the class that replaces Model {_ENTRY}")
    manifest = path.parent / MANIFEST
    if manifest.is_file():
        record = parse_manifest(_text(manifest))
        if str(record.get("entry_point", "")).split("::")[0] == path.name:
            return _folder(path.parent)
    files = {path.name: text}
    if _imports_runtime(tree):
        files |= _siblings(path, tree)
    return files, path.name


def _siblings(path: Path, tree: ast.Module) -> dict[str, str]:
    """Kernel sources that a file loads by a literal name, and the headers in their folders."""
    literals = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    headers_end = tuple(suffix for _, info in all_languages() for suffix in info.header_suffixes)
    sources_end = (*kernel_suffixes(), *headers_end)
    found: dict[str, str] = {}
    for name in sorted(n for n in literals if n.endswith(sources_end) and "\n" not in n):
        source = path.parent / name
        if Path(name).is_absolute() or ".." in Path(name).parts or not source.is_file():
            continue
        headers = [h for h in source.parent.iterdir() if h.suffix in headers_end and h.is_file()]
        for file in (source, *sorted(headers)):
            found[file.relative_to(path.parent).as_posix()] = _text(file)
    return found


def _folder(path: Path) -> tuple[dict[str, str], str]:
    files: dict[str, str] = {}
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(path)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
        if hidden or not file.is_file() or file.suffix in _BINARY_SUFFIXES:
            continue
        if len(files) >= _MAX_FILES:
            raise UsageError(f"{path} contains more than {_MAX_FILES} files; give the folder of one solution")
        files[relative.as_posix()] = _text(file)
    if MANIFEST in files:
        return files, ""
    candidates = [n for n in files if n.endswith(".py") and "/" not in n]
    for name in sorted(candidates, key=lambda n: n != "model_new.py"):
        if _ENTRY in _bound(_parse(path / name, files[name]).body):
            return files, name
    raise UsageError(f"{path} contains no Python file that defines class {_ENTRY}; add model_new.py")


def _language(files: dict[str, str], entry: str) -> str:
    imported = _imported(ast.parse(files[entry])) if entry in files else set()
    text = files.get(entry, "")
    return next((name for name, info in all_languages() if info.claims(files, imported, text)), "python")


def _solution(path: Path, files: dict[str, str], entry: str, definition: str, author: str) -> Solution:
    """Assemble the solution from its files and, if there is one, its manifest."""
    record: dict[str, Any] = parse_manifest(files.pop(MANIFEST, "{}"))
    spec = {k: record[k] for k in BuildSpec.model_fields if k in record}
    if not entry:
        entry = str(spec.get("entry_point", f"model_new.py::{_ENTRY}")).split("::")[0]
    spec.setdefault("entry_point", f"{entry}::{_ENTRY}")
    spec.setdefault("language", _language(files, entry))
    for name in runtime_files(str(spec["language"])):
        files.pop(name, None)
    files.pop(PRELUDE, None)
    try:
        solution = Solution(
            name=str(record.get("name") or path.resolve().stem),
            definition=definition,
            author=str(record.get("author") or author),
            description=str(record.get("description", "")),
            parameters=record.get("parameters", {}),
            spec=BuildSpec(**spec),
            sources=tuple(SourceFile(path=n, content=t) for n, t in sorted(files.items())),
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"{path} is not a usable solution: {first['msg']}; correct its {MANIFEST}"
        ) from error
    entry_text = solution.source(solution.entry_file)
    if not {solution.entry_class, "*"} & _bound(_parse(path / solution.entry_file, entry_text).body):
        raise UsageError(f"{path / solution.entry_file} defines no class {solution.entry_class}")
    return solution
