"""The adversarial corpus on disk: problems, hostile candidates and honest ones, read without running them.

A problem is a file of `problems/` in KernelBench's convention. A candidate is a file with `class ModelNew`,
or a folder with `model_new.py` and what it loads, below `hostile/<family>/` or `honest/<problem>/`. Each
begins with a docstring in YAML that says what it is; see README.md for the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from agentforge.frontends import FrontendOptions, load_target
from agentforge.schema import Definition, EvaluationStatus, Workload

ROOT = Path(__file__).resolve().parent
ENTRY = "model_new.py"
Kind = Literal["hostile", "honest"]

EVIDENCE_WORDS = ("unverified", "suspicious")
EXPECTATIONS = {*EVIDENCE_WORDS, *(s.value for s in EvaluationStatus)} - {"PASSED"}
"""What a hostile candidate's `expect` may name. `verified` is not among them."""


class CorpusError(Exception):
    """A file of the corpus is not as it must be; the message names it."""


@dataclass(frozen=True)
class Case:
    """One candidate of the corpus."""

    name: str
    """Path below the corpus without suffix, e.g. `hostile/f16_memo_by_address/data_ptr`."""
    kind: Kind
    path: Path
    """A Python file, or a folder with `model_new.py`."""
    problem: str
    family: int = 0
    """Number in the list of attacks; 0 for honest ones."""
    group: str = ""
    """Folder, for tables: `f16_memo_by_address`, or the problem for honest ones."""
    policy: str | None = None
    """Replaces the problem's policy."""
    expect: tuple[str, ...] = ()
    """Statuses or evidence that are right for a hostile candidate."""
    cheat: str = ""
    max_speedup: float | None = None
    """Where the attack gains nothing against a sound referee, the highest truthful speedup."""
    copy: bool = False
    """An honest copy of its reference: a verified interval must contain 1."""


@dataclass
class Problems:
    """Definitions of the corpus's problems, probed once each."""

    _loaded: dict[str, tuple[Definition, tuple[Workload, ...]]] = field(default_factory=dict)

    def get(self, case: Case) -> tuple[Definition, tuple[Workload, ...]]:
        """The definition and workloads that a case is judged by."""
        if case.problem not in self._loaded:
            path = ROOT / "problems" / f"{case.problem}.py"
            front = front_matter(path)
            target = load_target(str(path), FrontendOptions())
            definition = Definition(
                name=case.problem,
                op_type=front["op_type"],
                reference=target.definition.reference,
                policy=front["policy"],
                description=front.get("about", ""),
                dtypes=target.definition.dtypes,
                differentiable=target.definition.differentiable,
                finite=target.definition.finite,
            )
            self._loaded[case.problem] = (definition, target.workloads)
        definition, workloads = self._loaded[case.problem]
        if case.policy is not None:
            definition = definition.model_validate({**definition.model_dump(), "policy": case.policy})
        return definition, workloads


def front_matter(path: Path) -> dict[str, Any]:
    """The YAML docstring of a Python file, which is not run (nor parsed: some are made to break parsers).

    Raises:
        CorpusError: no docstring, or not a YAML mapping.
    """
    found = re.search(r'^"""(.*?)"""', path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    try:
        content = yaml.safe_load(_quoted(found[1] if found else ""))
    except yaml.YAMLError as error:
        raise CorpusError(f"{path}: the docstring is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise CorpusError(f"{path} has no docstring with `key: value` lines")
    return content


def _quoted(text: str) -> str:
    """Prose fields may hold colons and quotes: make them block scalars."""
    lines = []
    for line in text.splitlines():
        key, separator, value = line.partition(": ")
        prose = separator and key in ("cheat", "style", "about")
        lines.append(f"{key}: >-\n  {value}" if prose else line)
    return "\n".join(lines)


def _entries(folder: Path) -> Iterator[Path]:
    """Candidates below a folder: Python files, and folders with an entry file (not looked into)."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if (path / ENTRY).is_file():
                yield path
            else:
                yield from _entries(path)
        elif path.suffix == ".py":
            yield path


def _case(path: Path, kind: Kind) -> Case:
    source = path / ENTRY if path.is_dir() else path
    front = front_matter(source)
    unknown = front.keys() - {
        "problem",
        "family",
        "expect",
        "cheat",
        "policy",
        "max_speedup",
        "style",
        "copy",
    }
    if unknown or not (ROOT / "problems" / f"{front.get('problem')}.py").is_file():
        raise CorpusError(f"{source}: unknown field or problem in its docstring ({sorted(unknown)})")
    expect = tuple(front.get("expect", ()))
    if kind == "hostile" and (not expect or not set(expect) <= EXPECTATIONS or not front.get("family")):
        raise CorpusError(f"{source}: a hostile candidate names its family and what it expects")
    name = path.relative_to(ROOT).with_suffix("").as_posix()
    return Case(
        name=name,
        kind=kind,
        path=path,
        problem=front["problem"],
        family=int(front.get("family", 0)),
        group=name.split("/")[1],
        policy=front.get("policy"),
        expect=expect,
        cheat=front.get("cheat", front.get("style", "")),
        max_speedup=front.get("max_speedup"),
        copy=bool(front.get("copy", False)),
    )


def load_cases(kinds: Sequence[Kind] = ("hostile", "honest")) -> list[Case]:
    """All candidates, those of one definition one after another, so that its baselines stay warm.

    Raises:
        CorpusError: a file is not as it must be.
    """
    cases = [_case(path, kind) for kind in kinds for path in _entries(ROOT / kind)]
    return sorted(cases, key=lambda c: (c.problem, c.policy or "", c.kind, c.name))
