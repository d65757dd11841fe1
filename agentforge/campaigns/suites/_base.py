"""The contract of a suite."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from agentforge.registry import Registry
from agentforge.schema import NOT_PYTHON, SuiteProblem, UsageError, expanded
from agentforge.whole_file import whole_file

_MOST_BYTES = 16 << 20
"""Of a problem's file."""
_MOST_ID = 255
"""Characters of an identifier."""
_UNUSUAL = re.compile(r"[^\w.-]")
"""What the name of a generated file does not have."""
_HARDWARE = {"torch_npu": "an Ascend NPU", "aiter": "an AMD GPU"}
"""Packages that run on nothing else."""


@dataclass(frozen=True)
class Selection:
    """Which problems of a suite are wanted."""

    levels: tuple[int, ...] = ()
    """Of a suite with levels; empty means all."""
    only: str = "*"
    """Pattern of identifiers, as in a shell: `level1/*ReLU*`."""

    def wants(self, problem: SuiteProblem) -> bool:
        """Whether a problem's identifier fits the pattern."""
        return fnmatch(problem.id, self.only)


class Suite(Protocol):
    """Reads problems from a place on this machine; downloads nothing and runs nothing of theirs.

    A factory is called as `factory(place)`, `place` being the text after the colon of `NAME:PLACE`.
    """

    name: str
    form: str
    """How its specifications look, for messages: `kernelbench:DIR`."""
    packages: tuple[str, ...]
    """Packages that its problems import beside torch, each brought by an extra: `suites`, `hf` or `gpu`."""

    def problems(self, selection: Selection) -> Iterable[SuiteProblem]:
        """All problems at the selected levels, in a fixed order, with unique identifiers.

        Each workload of a definition is a problem, and all of them are another one whose identifier is the
        definition's name: see `selected`. One that cannot run here says why, and is not left out; so does
        a task that cannot be read, if others can.

        Raises:
            UsageError: the place is missing or is not of this form, or a level is not there.
        """
        ...


class FolderSuite:
    """A suite whose place is a folder."""

    def __init__(self, place: str) -> None:
        self._folder = expanded(place).absolute()


suites: Registry[Suite] = Registry(
    "suites",
    {
        "kernelbench": "agentforge.campaigns.suites.kernelbench:KernelBench",
        "folder": "agentforge.campaigns.suites.folder:ModelFolder",
        "list": "agentforge.campaigns.suites.toml_list:TomlList",
        "flashinfer": "agentforge.campaigns.suites.flashinfer:FlashInfer",
        "sol": "agentforge.campaigns.suites.sol:SolExecBench",
        "gpu-mode": "agentforge.campaigns.suites.gpu_mode:GpuMode",
        "robust-kbench": "agentforge.campaigns.suites.robust_kbench:RobustKBench",
        "multikernelbench": "agentforge.campaigns.suites.multikernelbench:MultiKernelBench",
    },
)
"""All suites, by the name before the colon."""


def open_suite(spec: str) -> Suite:
    """The suite of a specification `NAME:PLACE`.

    Raises:
        UsageError: no suite has this name or form.
    """
    name, _, place = spec.partition(":")
    if not place or name not in suites.names():
        forms = ", ".join(f"{known}:PLACE" for known in suites.names())
        raise UsageError(f"{spec!r} is no suite; give one of: {forms}")
    return suites.create(name, place)


def selected(suite: Suite, selection: Selection) -> tuple[SuiteProblem, ...]:
    """The wanted problems. A workload is left out if the problem of all workloads of its definition is there.

    Raises:
        UsageError: as for `Suite.problems`, or there are none, or two have one identifier, or one has an
            identifier that is no relative path.
    """
    wanted = [problem for problem in suite.problems(selection) if selection.wants(problem)]
    whole = {problem.id for problem in wanted}
    found = tuple(problem for problem in wanted if problem.definition not in whole)
    if not found and selection.only == "*":
        raise UsageError("the suite has no problem: name the place of another one")
    if not found:
        raise UsageError(f"no problem of the suite fits --only {selection.only!r}: choose another pattern")
    seen: set[str] = set()
    for problem in found:
        if not is_id(problem.id):
            raise UsageError(
                f"the suite has a problem {problem.id!r}: an id is a relative path without '..' and of at "
                f"most {_MOST_ID} characters"
            )
        if problem.id in seen:
            raise UsageError(f"the suite has two problems {problem.id!r}: give one another id or name")
        seen.add(problem.id)
    return found


def is_id(text: str) -> bool:
    """Whether exports may use it as a path, and every database can keep it."""
    path = PurePosixPath(text)
    return len(text) <= _MOST_ID and text.isprintable() and not path.is_absolute() and ".." not in path.parts


def file_problem(path: Path, *, identifier: str, group: str = "") -> SuiteProblem:
    """A problem that is one Python file in KernelBench's convention.

    Raises:
        UsageError: it cannot be read.
    """
    return SuiteProblem(
        id=identifier, group=group, target=str(path), file=str(path), source=read_problem(path)
    )


def generated_problem(identifier: str, source: str, **fields: Any) -> SuiteProblem:
    """A problem whose text in KernelBench's convention a suite made from another format.

    Args:
        fields: others of `SuiteProblem`.
    """
    file = f"{_UNUSUAL.sub('_', identifier)}.py"
    return SuiteProblem(id=identifier, target=file, file=file if source else "", source=source, **fields)


Task = tuple[str, str, Callable[[], Iterable[SuiteProblem]]]
"""Identifier and group of a task, and what reads its problems."""


def read_tasks(tasks: Iterable[Task], root: Path) -> list[SuiteProblem]:
    """The problems of all tasks. One that cannot be read is one problem, which is unsupported and says why.

    Args:
        root: folder of the suite, which reasons leave out: it differs between machines.

    Raises:
        UsageError: none can be read; the reason is that of the first one.
    """
    found: list[SuiteProblem] = []
    wrong: list[UsageError] = []
    for identifier, group, read in tasks:
        try:
            found += list(read())  # all of them or none
        except UsageError as error:
            wrong.append(error)
            reason = " ".join(str(error).replace(f"{root}/", "").split())
            found.append(generated_problem(shown(identifier), "", group=shown(group), unsupported=reason))
    if wrong and len(wrong) == len(found):
        raise wrong[0]
    return found


def shown(text: object) -> str:
    """A name that may not be UTF-8, or has a zero byte, as text that every database keeps."""
    return str(text).encode(errors="backslashreplace").decode().replace("\0", "\\0")


def other_hardware(source: str) -> str:
    """Why a source cannot run on any device that AgentForge knows; empty if nothing says so."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except NOT_PYTHON:
        return ""  # the frontend says why
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    needed = next((n for n in (name.partition(".")[0] for name in named) if n in _HARDWARE), None)
    return f"it imports {needed}, which needs {_HARDWARE[needed]}" if needed else ""


def suite_folder(folder: Path) -> Path:
    """The folder itself.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name the folder of the suite")
    return folder


def no_levels(form: str, selection: Selection) -> None:
    """Refuse a selection of levels.

    Raises:
        UsageError: levels are selected.
    """
    if selection.levels:
        raise UsageError(f"{form} has no levels: leave out --levels, or choose with --only")


def read_problem(path: Path, most: int = _MOST_BYTES) -> str:
    """Text of a problem's file, of at most `most` bytes.

    Raises:
        UsageError: it cannot be read, or is too large.
    """
    try:
        str(path).encode()
        if path.stat().st_size > most:
            raise UsageError(f"{path} has more than {most >> 20} MiB: split it or leave it out")
        return path.read_text(encoding="utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"the name {shown(path)} is not UTF-8: rename the file or leave it out") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown(path)} cannot be read ({error}): correct it or leave it out") from error


def parse_json(text: str, where: str) -> Any:
    """A JSON text.

    Raises:
        UsageError: it is no JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not JSON ({error}): correct it") from error


def json_lines(text: str, path: Path) -> list[tuple[str, Any]]:
    """Place and value of each line of a file of JSON lines that is not empty.

    Raises:
        UsageError: a line is no JSON.
    """
    lines = enumerate(text.split("\n"), 1)  # `splitlines` also cuts within strings, at U+2028
    places = ((f"{path}, line {number}", line) for number, line in lines if line.strip())
    return [(place, parse_json(line, place)) for place, line in places]


def keep_copy(path: Path, content: bytes) -> None:
    """Write a file that other processes may read meanwhile; one that has this content is left alone."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as draft:
        draft.write_bytes(content)


def python_files(folder: Path) -> list[Path]:
    """The Python files of a folder, `1_x` before `10_y`; not those that begin with `_`.

    Raises:
        UsageError: there is no such folder, or no file in it.
    """
    files = [path for path in suite_folder(folder).glob("*.py") if not path.name.startswith("_")]
    if not files:
        raise UsageError(f"{folder} contains no Python file: name the folder that has the problems")
    return sorted(files, key=_order)


def _order(path: Path) -> tuple[int, str]:
    head = path.stem.partition("_")[0]
    return (int(head) if head.isdecimal() else 0, path.name)
