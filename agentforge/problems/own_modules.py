"""Modules of the user that a source imports, and the folder that they lie in."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agentforge.isolation.sandboxes.namespaces import visible_system
from agentforge.schema import UsageError


def above_packages(folder: Path) -> Path:
    """The first folder, from this one upwards, that is no package."""
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def import_root_of(source: str, folder: Path) -> str | None:
    """The user's folder that the source imports modules from, else None.

    It is `folder`, the one above its packages, one between it and the working folder, or one that this
    process imports from and no sandbox shows, as of an editable installation. A self-contained file has none,
    so its definition has the same hash in every folder.

    Raises:
        UsageError: the source always imports modules from several.
    """
    folder, working = folder.resolve(), Path.cwd()
    near = (folder, above_packages(folder))
    between = [p for p in folder.parents if p.is_relative_to(working)]
    tree, shown = ast.parse(source), shown_folders()
    found = {head: _root_of(head, near, between, shown) for head in _heads(tree)}
    always = {head: found[head] for head in imported_heads(tree.body) if found[head]}
    roots = dict.fromkeys(always.values())
    if len(roots) > 1:
        first = {root: head for head, root in reversed(always.items())}
        raise UsageError(
            f"it imports {' and '.join(f'{first[root]} from {root}' for root in roots)}, and other processes "
            "get the modules of one folder: put them into one, or give the model itself to "
            "agentforge.optimize(model, inputs) in Python"
        )
    return next(filter(None, (*roots, *found.values())), None)


def _heads(tree: ast.AST) -> Iterator[str]:
    """First parts of the names that a source imports, unless it does so as a program only."""
    for node in ast.iter_child_nodes(tree):
        program = isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
        if isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)) and not program:
            yield from imported_heads([node])
            yield from _heads(node)


def imported_heads(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """First parts of the names that these statements import, but not those in their bodies."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _root_of(head: str, near: Sequence[Path], between: Sequence[Path], shown: Sequence[Path]) -> str | None:
    """The user's folder that a module or package of this name is imported from; None if there is none."""
    try:
        spec = importlib.util.find_spec(head)
    except (ImportError, ValueError, AttributeError):
        spec = None
    regular = spec is not None and spec.origin is not None  # wins over a folder without __init__.py
    everywhere = head in sys.stdlib_module_names or head == "agentforge"
    for root in (*near, *(() if everywhere else between)):
        package = root / head
        found = (root / f"{head}.py").is_file() or (package / "__init__.py").is_file()
        if (found and root in near) or (not regular and (found or package.is_dir())):
            return str(root)
    if spec is None or everywhere:
        return None
    parts = spec.submodule_search_locations
    file = spec.origin if regular else next(iter(parts or ()), None)
    return own_folder(file, shown, package=parts is not None) if file else None


def shown_folders() -> tuple[Path, ...]:
    """Folders whose modules sandboxed processes see: the interpreter's, and those of installed packages."""
    return tuple(place.resolve() for place in (*visible_system(), Path(os.__file__).parent))


def own_folder(file: str, shown: Sequence[Path], *, package: bool) -> str | None:
    """The folder on `sys.path` that a module or package was found in; None if it is in one of `shown`."""
    path = Path(file).resolve()
    if any(path.is_relative_to(place) for place in shown) or not path.exists():
        return None
    return str(path.parent.parent if package and path.suffix else path.parent)
