"""A TOML file that lists targets of any form, each with its options.

[[problems]]
target = "models/mlp.py:MLP"        # as for `optimize`; the path of a .py is relative to this file
input_shapes = ["8,512"]
id = "mlp"                          # optional, as are group, inputs, input_dtypes, init_args and dtype
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from agentforge.schema import SuiteProblem, UsageError, expanded

from ._base import Selection, no_levels, read_problem

_KEYS = ("id", "group", "target", "inputs", "input_shapes", "input_dtypes", "init_args", "dtype")

_LIST = 'write a list of strings, for example ["8,512"]'


class TomlList:
    """The entries `[[problems]]` of a TOML file."""

    name = "list"
    form = "list:FILE.toml"
    packages: tuple[str, ...] = ()

    def __init__(self, place: str) -> None:
        self._file = expanded(place).absolute()

    def problems(self, selection: Selection) -> Iterator[SuiteProblem]:
        """See `Suite`."""
        no_levels(self.form, selection)
        if not self._file.is_file():
            raise UsageError(f"{self._file} is not a file: name a TOML file that lists the problems")
        try:
            listed = tomllib.loads(read_problem(self._file)).get("problems")
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{self._file} is not TOML ({error}): correct it") from error
        if not isinstance(listed, list) or not listed:
            raise UsageError(f"{self._file} has no [[problems]]: add one for each target")
        for number, entry in enumerate(listed, 1):
            yield self._problem(number, entry)

    def _problem(self, number: int, entry: Any) -> SuiteProblem:
        where = f"{self._file}, problem {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("target"), str):
            raise UsageError(f'{where} has no target: write target = "file.py"')
        unknown = sorted(entry.keys() - set(_KEYS))
        if unknown:
            raise UsageError(f"{where} has the unknown key {unknown[0]!r}; the keys are: {', '.join(_KEYS)}")
        head, colon, class_name = entry["target"].partition(":")
        path = (self._file.parent / head).absolute()
        fields: dict[str, Any] = {"id": f"{path.stem}.{class_name}" if colon else path.stem, **entry}
        if head.endswith(".py"):
            fields |= {
                "target": f"{path}{colon}{class_name}",
                "file": str(path),
                "source": read_problem(path),
            }
        try:
            return SuiteProblem.model_validate(fields)
        except ValidationError as error:
            first = error.errors()[0]
            said = _LIST if first["type"] == "tuple_type" else first["msg"]
            raise UsageError(f"{where}, {'.'.join(map(str, first['loc']))}: {said}") from error
