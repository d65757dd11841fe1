"""The contract of a tracker: hooks that receive a run's events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agentforge.registry import Registry
from agentforge.schema import Event


class Tracker(Protocol):
    """Receives the events of one run, in order.

    A factory is called as `factory(run, **options)`, `run` being the `Run`; a resumed run makes a new tracker
    for the same `run.id`, which receives the events from then on. All calls come from one thread that is not
    the run's: a slow tracker delays nothing. Whatever a tracker raises is logged and ends only the tracker.
    """

    name: str

    def on_event(self, event: Event) -> None:
        """An event of the run, after it was stored."""
        ...

    def close(self) -> None:
        """The run ended or was interrupted; no event follows."""
        ...


trackers: Registry[Tracker] = Registry("trackers", {"jsonl": "agentforge.trackers.jsonl:JsonLines"})
"""All trackers, by name."""


def check_trackers(names: Sequence[str], options: Mapping[str, Mapping[str, Any]]) -> None:
    """Report a wrong tracker before a run begins.

    Args:
        names: setting `trackers`.
        options: setting `tracker_options`, by tracker.

    Raises:
        UsageError: a name or an option is unknown, also of a tracker that is not in use.
        MachineError: a tracker's package cannot be imported.
    """
    for name in [*names, *options]:
        trackers.check(name, options.get(name, {}))
