"""One small registry for every plug-in point.

A plug-in point (language, sandbox, frontend, search policy, agent) is a Protocol in its package's
`_base.py` and one file an implementation. Built-in implementations are named here by `module:attribute`
and imported when asked for, so that a missing optional package costs nothing until it is needed; other
packages add theirs through the entry-point group `agentforge.<point>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from agentforge.schema import UsageError

T = TypeVar("T")


class Registry(Generic[T]):
    """Implementations of one plug-in point, by name.

    Args:
        point: name of the plug-in point, for messages and for the entry-point group.
        builtin: name to `module:attribute`.
    """

    def __init__(self, point: str, builtin: Mapping[str, str]) -> None:
        self.point = point
        self._builtin = dict(builtin)

    @property
    def group(self) -> str:
        """Entry-point group that other packages register in."""
        return f"agentforge.{self.point}"

    def names(self) -> list[str]:
        """All names, the built-in ones first."""
        others = sorted({e.name for e in entry_points(group=self.group)} - self._builtin.keys())
        return [*self._builtin, *others]

    def get(self, name: str) -> Callable[..., T]:
        """The factory (usually the class) registered as `name`.

        Raises:
            UsageError: unknown name; the message lists the known ones.
        """
        if name in self._builtin:
            module, _, attribute = self._builtin[name].partition(":")
            factory: Callable[..., T] = getattr(import_module(module), attribute)
            return factory
        for entry in entry_points(group=self.group, name=name):
            loaded: Callable[..., T] = entry.load()
            return loaded
        raise UsageError(f"unknown {self.point} {name!r}; choose one of: {', '.join(self.names())}")

    def create(self, name: str, *args: Any, **kwargs: Any) -> T:
        """Call the factory registered as `name`."""
        return self.get(name)(*args, **kwargs)
