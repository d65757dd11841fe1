"""Work on a campaign: workers here or on a Ray cluster, and the way on after Ctrl-C."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from agentforge.views import output as _print

from . import _interrupt, _options
from .commands import campaign_views

if TYPE_CHECKING:
    from agentforge.campaigns.executors.ray_cluster import Resources


def ray_actors(executor: str, cpus: float, gpus: float | None) -> Resources | None:
    """Resources of each actor, if the workers are actors."""
    if executor != "ray":
        return None
    from agentforge.campaigns.executors.ray_cluster import Resources, check_ray

    actors = Resources(cpus, gpus)
    check_ray(actors)
    return actors


def drive_ray(name: str, count: int, config: list[str] | None, cpus: float, gpus: float | None) -> None:
    """Be the program that Ray knows: Ray ends it without a word to Python if the cluster's head dies."""
    from agentforge.campaigns.executors.ray_cluster import Resources, run_actors

    url = _options.settings(config).url
    with _options.store(config, create=False) as store:
        codes = run_actors(
            name,
            count,
            config or (),
            Resources(cpus, gpus),
            device=store.get_campaign(name).device,
            url=url,
            tell=_print.aside,
            finished=lambda: store.campaign_progress(name).finished,
        )
    raise typer.Exit(max(map(abs, codes), default=0))


def work(
    name: str,
    workers: int,
    config: list[str] | None,
    actors: Resources | None,
    *,
    as_json: bool,
    quiet: bool = False,
) -> None:
    """Work until no item is left, and show how far the campaign is.

    Args:
        quiet: do not show it; the process that started this worker does.

    Raises:
        MachineError: workers ended early, and items are left.
        typer.Exit: interrupted (130); the user knows how to continue.
    """
    from agentforge.campaigns.executors.local import run_workers
    from agentforge.campaigns.status import status_of
    from agentforge.campaigns.worker import Worker
    from agentforge.schema import MachineError

    codes: list[int] = []
    with _options.store(config, create=False) as store:
        command = f"agentforge campaign resume {name}{_options.same_database(config)}"

        def say() -> None:
            _interrupt.once(lambda: _interrupted(command, as_json=as_json))

        _interrupt.last_word(say)
        try:
            if actors and workers:
                codes = run_workers(name, 1, config or (), ["--actors", str(workers), *actors.options()])
            elif workers == 1:
                Worker(store, name, overrides=config or (), tell=_print.aside).work()
            elif workers:
                codes = run_workers(name, workers, config or ())
        except KeyboardInterrupt as error:
            _interrupt.leave()
            say()
            raise typer.Exit(_interrupt.INTERRUPTED) from error
        if quiet:
            return
        status = status_of(store, name)
    if any(codes) and not status.finished:
        if actors:
            raise MachineError(
                f"Ray or one of its workers ended early, and nothing is lost: see the messages above, then "
                f"continue with `{command}`, with or without --executor ray"
            )
        raise MachineError(
            f"{sum(map(bool, codes))} of {workers} workers of campaign {name} ended early: see their "
            f"messages, then continue with `{command}`"
        )
    campaign_views.show_status(status, as_json=as_json)


def _interrupted(command: str, *, as_json: bool) -> None:
    _print.aside(f"agentforge: interrupted; continue with: {command}")
    if as_json:
        _print.as_json({"error": "interrupted", "exit_code": _interrupt.INTERRUPTED, "resume": command})
        sys.stdout.flush()
