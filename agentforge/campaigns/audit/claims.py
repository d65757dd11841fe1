"""A folder of `ModelNew` files and their references, with `claims.json`:

{"claims": [{"solution": "relu_fast.py", "reference": "relu.py", "speedup": 1.8, "correct": true}]}

`id`, `speedup`, `correct`, `baseline` (`eager` or `compile`), `device` and `policy` are optional.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from agentforge.schema import UsageError, WorkPolicy, first_fault

from ._base import Claim, Submission, read_json

FILE = "claims.json"
_KEYS = ("id", "solution", "reference", "policy", *Claim.model_fields)


class ClaimsFolder:
    """Paths are relative to the folder, and stay in it; references may come from `problems` instead."""

    name = "claims"
    form = f"a folder with {FILE}"

    def accepts(self, place: Path) -> bool:
        """See `Layout`."""
        return (place / FILE).is_file()

    def submissions(self, place: Path, problems: Path | None, scratch: Path) -> Iterator[Submission]:
        """See `Layout`."""
        content = read_json(place / FILE)
        claims = content.get("claims") if isinstance(content, dict) else content
        if not isinstance(claims, list) or not claims:
            raise UsageError(f'{place / FILE} lists no claims: write {{"claims": [{{"solution": ...}}]}}')
        for position, entry in enumerate(claims, 1):
            yield self._submission(place, problems or place, entry, f"{place / FILE}, claim {position}")

    @staticmethod
    def _submission(place: Path, problems: Path, entry: Any, where: str) -> Submission:
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(key), str) and entry[key] for key in ("solution", "reference")
        ):
            raise UsageError(f"{where} has no solution or reference: name a file for each")
        unknown = sorted(entry.keys() - set(_KEYS))
        if unknown:
            raise UsageError(f"{where} has the unknown key {unknown[0]!r}; the keys are: {', '.join(_KEYS)}")
        if entry.get("policy") not in (None, *get_args(WorkPolicy)):
            raise UsageError(f"{where} has an unknown policy; they are: {', '.join(get_args(WorkPolicy))}")
        solution, reference = (_inside(root, entry[key]) for root, key in _roots(place, problems))
        missing = [entry[key] for key, path in (("solution", solution), ("reference", reference)) if not path]
        try:
            return Submission(
                id=entry.get("id") or entry["solution"].removesuffix(".py"),
                problem=entry["reference"].removesuffix(".py"),
                reference=reference,
                solution=solution,
                policy=entry.get("policy"),
                claim=Claim(**{key: entry[key] for key in Claim.model_fields if key in entry}),
                unusable=f"{missing[0]} is not in the folder" if missing else "",
            )
        except ValidationError as error:
            field, message = first_fault(error)
            raise UsageError(f"{where}, {field}: {message}") from error


def _roots(place: Path, problems: Path) -> tuple[tuple[Path, str], tuple[Path, str]]:
    return (place, "solution"), (problems, "reference")


def _inside(folder: Path, name: str) -> Path | None:
    """The path, if it exists and is in the folder."""
    try:
        path = (folder / name).resolve()
        return path if path.exists() and path.is_relative_to(folder.resolve()) else None
    except (OSError, ValueError):
        return None
