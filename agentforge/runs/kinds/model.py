"""Runs that begin with a whole model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from agentforge.config import Settings
from agentforge.devices import DeviceSpec
from agentforge.frontends import FrontendOptions, check_target, load_target
from agentforge.problems.failures import KnownFailures
from agentforge.schema import RunKind, Target

from .._base import RunInput
from ..checks import check_language
from ..run_settings import for_device


@dataclass(frozen=True)
class TargetStart:
    """A whole model, by a function that loads it as a target."""

    loader: Callable[[], Target]
    """Called in a thread of its own, after all checks."""
    checker: Callable[[], None] = lambda: None
    """Raises what `loader` raises without running the model."""
    ranged: bool = False
    """Whether the target is a range of shapes."""
    kind: ClassVar[RunKind] = RunKind.MODEL

    def check(self, settings: Settings, device: DeviceSpec) -> None:
        """Refuse a model that cannot be loaded, and a language that cannot be built here."""
        self.checker()
        check_language(for_device(settings, device).search.language)

    def load(self, settings: Settings, device: DeviceSpec) -> RunInput:
        """What the function returns."""
        return RunInput(self.loader(), settings)


@dataclass(frozen=True)
class ModelStart:
    """A whole model, in any form that a frontend takes."""

    spec: str
    options: FrontendOptions
    """The device in it is replaced by the run's."""
    kind: ClassVar[RunKind] = RunKind.MODEL

    @property
    def ranged(self) -> bool:
        """Whether the target is a range of shapes."""
        return bool(self.options.shapes)

    def check(self, settings: Settings, device: DeviceSpec) -> None:
        """Refuse a target that cannot be read, and a language that cannot be built here."""
        check_target(self.spec, self.options, settings.frontend_options)
        check_language(for_device(settings, device).search.language)

    def load(self, settings: Settings, device: DeviceSpec) -> RunInput:
        """The target, loaded in a child process."""
        failures = KnownFailures(settings.cache, device)
        options = replace(self.options, device=device.torch_device, failures=failures)
        return RunInput(load_target(self.spec, options, settings.frontend_options), settings)
