"""What every noun shares: frozen, documented, strict about unknown fields, hashed by content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, StringConstraints

from .errors import UsageError

NonEmptyString = Annotated[str, StringConstraints(min_length=1)]


class FrozenModel(BaseModel):
    """Immutable record whose attribute docstrings are its JSON schema's descriptions."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        ser_json_inf_nan="strings",
    )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, with cached properties (hashes) computed anew: they would be those of the original."""
        copy = super().model_copy(update=update, deep=deep)
        for kind in type(self).__mro__:
            for name, value in vars(kind).items():
                if isinstance(value, cached_property):
                    copy.__dict__.pop(name, None)
        return copy


class RunRecord(FrozenModel):
    """What a run keeps of itself: at most one record of each class."""

    record_name: ClassVar[str]
    """In the database: a name never changes."""


def content_hash(value: Any, *, length: int = 16) -> str:
    """Hash JSON-able data independently of key order.

    Args:
        length: hexadecimal digits to keep of the SHA-256 digest (at most 64).
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path in the user's words, with its `~` resolved.

    Raises:
        UsageError: the path names a user who does not exist.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path} is nowhere, because there is no such user: name another path") from error
