"""What every noun shares: frozen, documented, strict about unknown fields, hashed by content."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

NonEmptyString = Annotated[str, StringConstraints(min_length=1)]


class FrozenModel(BaseModel):
    """Immutable record whose attribute docstrings are its JSON schema's descriptions."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        ser_json_inf_nan="strings",
    )


def content_hash(value: Any, *, length: int = 16) -> str:
    """Hash JSON-able data independently of key order.

    Args:
        value: anything `json.dumps` takes.
        length: hexadecimal digits to keep of the SHA-256 digest (at most 64).
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]
