"""Prices of calls by vendor and model."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from agentforge.schema import FrozenModel, UsageError, first_fault

from ._base import LanguageModel, Tokens

BUILT_IN = Path(__file__).with_name("prices.toml")


class Price(FrozenModel):
    """Dollars per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    """Output tokens, reasoning included."""
    cached: float | None = Field(default=None, ge=0)
    """Tokens read from the cache; None means `input`."""
    cache_write: float | None = Field(default=None, ge=0)
    """Tokens written to the cache; None means `input`."""

    def of(self, tokens: Tokens) -> float:
        """Dollars of a call."""
        plain = max(0, tokens.input - tokens.cached - tokens.cache_written)
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        total = plain * self.input + tokens.cached * cached + tokens.cache_written * written
        return (total + tokens.output * self.output) / 1e6

    def most(self, tokens_in: int, tokens_out: int) -> float:
        """Dollars at the highest price for this number of tokens."""
        dearest = max(self.input, self.cache_write or 0.0)
        return (tokens_in * dearest + tokens_out * self.output) / 1e6


class Prices:
    """A price table.

    Args:
        override: TOML file in the format of the built-in one; its prices take precedence.

    Raises:
        UsageError: the file is missing or invalid.
    """

    def __init__(self, override: Path | None = None) -> None:
        files = [path for path in (override, BUILT_IN) if path is not None]
        self._tables = [_load(path) for path in files]

    def find(self, spec: str) -> Price | None:
        """Price of `openai:gpt-5.5` or `openai:MODEL@URL`; None if unknown.

        A model at the user's URL has a price only if the override contains `MODEL@URL`.
        """
        vendor, _, model = spec.partition(":")
        for table in self._tables:
            entries = table.get(vendor, {})
            matching = [name for name in entries if _matches(name, model)]
            if matching:
                return entries[max(matching, key=len)]
        return None

    def of_model(self, model: LanguageModel) -> Price | None:
        """Price of a model: by the tables, else what a plug-in's model declares in an attribute `price`."""
        declared = getattr(model, "price", None)
        return self.find(model.spec) or (declared if isinstance(declared, Price) else None)

    def check(self, model: LanguageModel) -> None:
        """Refuse a budget of dollars for a model of unknown price.

        Raises:
            UsageError: the price is not known.
        """
        if self.of_model(model) is None:
            raise UsageError(
                f"the price of {model.spec} is not known, so a budget of dollars cannot be kept: "
                "name it in a price table (-c llm.prices=FILE), or limit tokens instead (-c budget.tokens=N)"
            )


def _matches(name: str, model: str) -> bool:
    """The name itself, or the name followed by a date: `gpt-5.5-ultra` does not get the price of
    `gpt-5.5`."""
    rest = model.removeprefix(name) if model.startswith(name) else None
    return rest is not None and re.fullmatch(r"(?:[-@]\d{4}-?\d{2}-?\d{2}|-latest)?", rest) is not None


def _load(path: Path) -> dict[str, dict[str, Price]]:
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"price table {path} cannot be read ({error}): check llm.prices") from error
    tables = {vendor: models for vendor, models in raw.items() if isinstance(models, dict)}
    try:
        return {
            vendor: {name: Price.model_validate(price) for name, price in models.items()}
            for vendor, models in tables.items()
        }
    except ValidationError as error:
        where, message = first_fault(error)
        raise UsageError(f"price table {path}: {where}: {message}") from error
