"""One small registry for every plug-in point.

A plug-in point is a Protocol in its package's `_base.py` and one file per implementation. Other packages add
implementations through the entry-point group `agentforge.<point>`, which is asked first. Built-ins are named
here by `module:attribute` and imported on first use.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from agentforge.schema import MachineError, UsageError, first_fault

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Availability:
    """Whether something works on this machine."""

    ok: bool
    detail: str
    """Version when it works; otherwise the missing part and how to get it."""


@lru_cache(maxsize=64)
def _installed(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of a group; reading all distributions takes some 10 ms, so once per `sys.path`."""
    return tuple(entry_points(group=group))


class Registry(Generic[T]):
    """Implementations of one plug-in point, by name. Thread-safe.

    A factory that is a pydantic model, or has one as an attribute `Options`, has its options validated.
    """

    def __init__(self, point: str, builtin: Mapping[str, str]) -> None:
        self.point = point
        self._builtin = dict(builtin)
        self._announced: set[str] = set()

    @property
    def group(self) -> str:
        """Entry-point group that other packages register in."""
        return f"agentforge.{self.point}"

    def plugins(self) -> list[str]:
        """Names that other packages add or replace, in alphabetical order."""
        return sorted({entry.name for entry in self._entries()})

    def names(self) -> list[str]:
        """All names: plug-ins first, then the built-ins in the order of their declaration."""
        plugins = self.plugins()
        return [*plugins, *(name for name in self._builtin if name not in plugins)]

    def get(self, name: str) -> Callable[..., T]:
        """The factory registered as `name`: the plug-in's if there is one, else the built-in.

        Raises:
            UsageError: unknown name (the message lists the known ones), or two packages add the same name.
            MachineError: the plug-in cannot be imported.
        """
        entry = self._entry(name)
        if entry is not None:
            return self._load(entry)
        if name in self._builtin:
            module, _, attribute = self._builtin[name].partition(":")
            factory: Callable[..., T] = getattr(import_module(module), attribute)
            return factory
        raise UsageError(f"{name!r} is not one of the {self.point}: {', '.join(self.names())}")

    def create(self, name: str, *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any) -> T:
        """Call the factory registered as `name`.

        Args:
            options: from the settings; passed as keyword arguments after validation.

        Raises:
            UsageError: as for `get`, or an option is unknown or has a wrong value.
            MachineError: as for `get`.
        """
        factory = self.get(name)
        return factory(*args, **kwargs, **self._validated(name, factory, options or {}))

    def check(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        """Raise what `create` would raise for this name and these options, without making anything."""
        self._validated(name, self.get(name), options or {})

    def working(self, names: Sequence[str] | None = None) -> Iterator[tuple[str, Callable[..., T]]]:
        """Names and factories in the order of `names()`, without plug-ins that cannot be loaded."""
        for name in self.names() if names is None else names:
            try:
                yield name, self.get(name)
            except (UsageError, MachineError) as error:
                if name not in self.plugins():
                    raise
                _log.warning("%s", error)

    def _entries(self) -> tuple[EntryPoint, ...]:
        return _installed(self.group, tuple(sys.path))

    def _entry(self, name: str) -> EntryPoint | None:
        found = {(_package(e), e.value): e for e in self._entries() if e.name == name}
        if len(found) > 1:
            packages = " and ".join(sorted(package for package, _ in found))
            raise UsageError(f"{packages} both add {name!r} to {self.group}: uninstall one of them")
        return next(iter(found.values()), None)

    def _load(self, entry: EntryPoint) -> Callable[..., T]:
        try:
            factory: Callable[..., T] = entry.load()
        except (Exception, SystemExit) as error:  # whatever a plug-in's module raises when it is imported
            raise MachineError(
                f"{self._described(entry)} cannot be loaded ({type(error).__name__}: {error}): "
                "update or uninstall that package"
            ) from error
        if not callable(factory):
            raise MachineError(f"{self._described(entry)} is wrong: {entry.value} must be callable")
        if entry.name in self._builtin and entry.name not in self._announced:
            self._announced.add(entry.name)
            _log.warning(
                "%s: %r is %s from the package %s; it replaces the built-in",
                self.point, entry.name, entry.value, _package(entry),
            )  # fmt: skip
        return factory

    def _described(self, entry: EntryPoint) -> str:
        return f"the plug-in {entry.name!r} of {self.group}, from the package {_package(entry)},"

    def _validated(self, name: str, factory: Callable[..., T], options: Mapping[str, Any]) -> dict[str, Any]:
        """The options as keyword arguments."""
        model = getattr(factory, "Options", factory)
        if isinstance(model, type) and issubclass(model, BaseModel):
            unknown = sorted(options.keys() - model.model_fields.keys())
            if unknown:
                raise self._unknown(name, unknown[0], list(model.model_fields))
            try:
                values = model.model_validate(dict(options))
            except ValidationError as error:
                where, message = first_fault(error)
                raise UsageError(f"option {where} of {name!r} ({self.point}): {message}") from error
            return {field: getattr(values, field) for field in model.model_fields}
        if not options:
            return {}
        keywords = _keywords(factory)
        unknown = sorted(options.keys() - keywords) if keywords is not None else []
        if unknown:
            raise self._unknown(name, unknown[0], sorted(keywords or ()))
        return dict(options)

    def _unknown(self, name: str, option: str, known: list[str]) -> UsageError:
        has = f"its options are: {', '.join(known)}" if known else "it has no options"
        return UsageError(f"{name!r} ({self.point}) has no option {option!r}; {has}")


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def _keywords(factory: Callable[..., Any]) -> set[str] | None:
    """Names of a factory's keyword-only parameters; None if it takes any keyword."""
    parameters = inspect.signature(factory).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
