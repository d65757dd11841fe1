"""`agentforge campaign start | work | pause | resume | retry | extend`, and those of `campaign_views.py`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentforge.views import output as _print
from agentforge.views import text as _text

from .. import _campaign_work, _options
from . import campaign_views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentforge.campaigns.start import Most
    from agentforge.schema import Campaign

Workers = Annotated[
    int,
    typer.Option(
        "--workers", min=0, help="Worker processes on this machine. 0 only fills the queue for `work`."
    ),
]
Executor = Annotated[
    Literal["local", "ray"],
    typer.Option(
        "--executor", help="Where the workers run: processes on this machine, or actors of a Ray cluster."
    ),
]
Cpus = Annotated[float, typer.Option("--cpus", help="With --executor ray: CPUs of each worker.")]
Gpus = Annotated[
    float | None,
    typer.Option(
        "--gpus",
        help="With --executor ray: GPUs of each worker. Default: 1 if the campaign measures on a GPU.",
    ),
]

_OF_ARMS = ("search.planner", "search.coder", "search.judge")
"""Settings that each arm decides."""
_MOST_LEVELS = 100
"""Levels of a suite that a range may name."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    campaign = typer.Typer(
        help="Work on all problems of a suite: a resumable queue, scores, reports.", no_args_is_help=True
    )
    campaign.command(name="start")(_options.expanded(start))
    campaign.command(name="work")(work)
    campaign.command(name="pause")(pause)
    campaign.command(name="resume")(resume)
    campaign.command(name="retry")(retry)
    campaign.command(name="extend")(extend)
    campaign_views.register(campaign)
    app.add_typer(campaign, name="campaign")


def start(
    suite: Annotated[
        str, typer.Argument(help="NAME:PLACE, for example kernelbench:DIR; see docs/campaigns.md.")
    ],
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            metavar="NAME:AGENT",
            help="Who works on each problem: NAME:playbook or NAME:llm:PROVIDER:MODEL (repeatable); "
            "llm:PROVIDER:MODEL has the name llm. Default: playbook:playbook.",
        ),
    ] = None,
    levels: Annotated[
        str, typer.Option("--levels", metavar="RANGE", help="Levels of the suite, e.g. 1-3 or 1,3.")
    ] = "",
    only: Annotated[
        str, typer.Option("--only", metavar="PATTERN", help="Problems by identifier, e.g. 'level1/*ReLU*'.")
    ] = "*",
    minutes: _options.Minutes = None,
    attempts: _options.Attempts = None,
    dollars: Annotated[
        float | None,
        typer.Option("--dollars", help="Most US dollars for the campaign, in equal shares for its runs."),
    ] = None,
    limit_minutes: Annotated[
        float | None,
        typer.Option(
            "--limit-minutes",
            help="Most minutes of wall time for one problem. Default: 10 plus 3 times those of its search: "
            "--minutes, else 1.25, or 10 if only --attempts is given.",
        ),
    ] = None,
    workers: Workers = 1,
    executor: Executor = "local",
    cpus: Cpus = 1.0,
    gpus: Gpus = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of the campaign. Default: from the suite and the settings.")
    ] = "",
    device: _options.Device = "auto",
    yes: Annotated[bool, typer.Option("--yes", help="Begin without a question.")] = False,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Work on all problems of a suite with one or several agents.

    The same command continues the campaign that it started. Ctrl-C stops it; no result is lost.
    """
    limits = {"budget__minutes": minutes, "budget__attempts": attempts}
    settings = _options.settings(config, **limits)
    _check_roles(config or ())
    actors = _campaign_work.ray_actors(executor, cpus, gpus)
    from agentforge.campaigns.start import check_version, most, parse_arms, plan_campaign
    from agentforge.campaigns.suites import Selection
    from agentforge.schema import CampaignState, UsageError

    campaign, problems = plan_campaign(
        suite,
        parse_arms(arm or ()),
        settings,
        selection=Selection(_levels(levels), only),
        dollars=dollars,
        limit_minutes=limit_minutes,
        device=device,
        name=name,
    )
    with _options.store(config) as store:
        known = store.find_campaign(campaign.name)
        if known is not None:
            check_version(known)
            if known.state is CampaignState.PAUSED:
                raise UsageError(
                    f"campaign {known.name} is paused: continue it with `agentforge campaign resume "
                    f"{known.name}{store.options}`"
                )
        else:
            _print.aside(_said(campaign, most(campaign, workers), workers, store.options))
            if not yes:
                if json:
                    raise UsageError("--json asks no question: add --yes to begin")
                if not sys.stdin.isatty():
                    raise UsageError("there is no terminal to ask at: add --yes to begin")
                if not typer.confirm("Begin?", err=True):
                    _print.aside("nothing was begun")
                    raise typer.Exit(1)
        if not store.create_campaign(campaign, problems):
            _print.aside(f"campaign {campaign.name} exists: it goes on")
    _campaign_work.work(campaign.name, workers, config, actors, as_json=json)


def _check_roles(config: Sequence[str]) -> None:
    """Refuse settings that the arms decide.

    Raises:
        UsageError: one is given.
    """
    from agentforge.schema import UsageError

    for override in config:
        if override.partition("=")[0] in _OF_ARMS:
            raise UsageError(
                f"-c {override} has no effect in a campaign, because the agent of an arm plans, writes and "
                "judges: name the model with --arm NAME:llm:PROVIDER:MODEL"
            )


def _said(campaign: Campaign, limits: Most, workers: int, options: str) -> str:
    """What the campaign can cost at most and how long it can take.

    Args:
        options: of a command that finds the same database.
    """
    dollars = "any amount of dollars (--dollars limits it)"
    if limits.dollars is not None:
        dollars = f"{limits.dollars:g} dollars"
    where, alone = f"on {workers} worker{'' if workers == 1 else 's'}", ""
    if not workers:
        where = f"for the workers that you start with `agentforge campaign work {campaign.name}{options}`"
        alone = " with one worker"
    searching = f"; the search budgets are {_text.seconds(limits.budget_s)} of it" if limits.budget_s else ""
    return (
        f"campaign {campaign.name}: {campaign.problems} problems x {len(campaign.arms)} arms = {limits.runs} "
        f"runs {where}. At most {dollars} and {_duration(limits.seconds)}{alone}"
        f" (limit of a run: {_duration(campaign.limit_s)}{searching})."
    )


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{seconds / 60:.1f} min"


def _levels(text: str) -> tuple[int, ...]:
    """Levels from `1-3` or `1,3`.

    Raises:
        UsageError: the text has another form.
    """
    from agentforge.schema import UsageError

    found: list[int] = []
    try:
        for part in filter(None, text.split(",")):
            low, _, high = part.partition("-")
            span = range(int(low), int(high or low) + 1)
            if not 0 < len(span) <= _MOST_LEVELS:
                raise ValueError
            found += span
    except ValueError:
        raise UsageError(f"--levels {text!r} has the wrong form: write 1-3 or 1,3") from None
    return tuple(dict.fromkeys(found))


def work(
    name: _options.CampaignName,
    parent: Annotated[int, typer.Option(hidden=True)] = 0,
    actors: Annotated[int, typer.Option(hidden=True)] = 0,
    cpus: Annotated[float, typer.Option(hidden=True)] = 1.0,
    gpus: Annotated[float | None, typer.Option(hidden=True)] = None,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Be one worker of a campaign, on any machine that reaches its database (-c database_url=URL).

    In the place of the name, the database's URL means the only campaign that has items left.
    """
    if parent:
        import signal

        from agentforge.isolation.linux import die_with_parent

        # Not SIGINT: Ray's processes block it, and what a script starts in the background ignores it.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        die_with_parent(signal.SIGTERM)
        if os.getppid() != parent:
            raise KeyboardInterrupt
    if "://" in name:
        from agentforge.campaigns.status import only_unfinished

        config = [*(config or ()), f"database_url={name}"]
        with _options.store(config, create=False) as store:
            name = only_unfinished(store)
    if actors:
        _campaign_work.drive_ray(name, actors, config, cpus, gpus)
    else:
        _campaign_work.work(name, 1, config, None, as_json=json, quiet=bool(parent))


def pause(name: _options.CampaignName, config: _options.Config = None, json: _options.Json = False) -> None:
    """Let workers take no new item. Items in progress end."""
    from agentforge.campaigns.status import status_of
    from agentforge.schema import CampaignState

    with _options.store(config, create=False) as store:
        store.get_campaign(name)
        store.set_campaign_state(name, CampaignState.PAUSED)
        campaign_views.show_status(status_of(store, name), as_json=json)


def resume(
    name: _options.CampaignName,
    workers: Workers = 1,
    executor: Executor = "local",
    cpus: Cpus = 1.0,
    gpus: Gpus = None,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Continue a campaign that was paused or interrupted."""
    from agentforge.campaigns.start import check_version
    from agentforge.schema import CampaignState

    actors = _campaign_work.ray_actors(executor, cpus, gpus)
    with _options.store(config, create=False) as store:
        check_version(store.get_campaign(name))
        store.set_campaign_state(name, CampaignState.OPEN)
    _campaign_work.work(name, workers, config, actors, as_json=json)


def retry(
    name: _options.CampaignName,
    failed: Annotated[bool, typer.Option("--failed", help="Also failed and unsupported items.")] = False,
    limit_minutes: Annotated[
        float | None,
        typer.Option(
            "--limit-minutes",
            help="From now on, most minutes of wall time for one problem. An item that was out of time goes "
            "on with its run.",
        ),
    ] = None,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Put quarantined items back into the queue; `resume` then works on them.

    They begin anew, except those that reached their limit of time.
    """
    from agentforge.campaigns.extend import retry as retried
    from agentforge.campaigns.status import status_of
    from agentforge.schema import ItemState

    states = (ItemState.QUARANTINED, *((ItemState.FAILED, ItemState.UNSUPPORTED) if failed else ()))
    with _options.store(config, create=False) as store:
        count = retried(store, name, states, limit_minutes=limit_minutes)
        status = status_of(store, name)
    _print.aside("1 item waits again" if count == 1 else f"{count} items wait again")
    campaign_views.show_status(status, as_json=json, retried=count)


def extend(
    name: _options.CampaignName,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", help="Minutes of wall time that all visits together are expected to take."),
    ] = None,
    dollars: Annotated[
        float | None, typer.Option("--dollars", help="Most US dollars that all visits together can spend.")
    ] = None,
    objective: Annotated[
        str, typer.Option("--objective", help="What to gain: fast_P, as in fast_1; speedup; or sol.")
    ] = "fast_1",
    hour_dollars: Annotated[
        float,
        typer.Option(
            "--hour-dollars",
            min=0,
            help="Price of an hour of a worker; not given, it is 1 if only some arms cost dollars.",
        ),
    ] = 0.0,
    device_hour_dollars: Annotated[
        float, typer.Option("--device-hour-dollars", min=0, help="Price of an hour of measuring.")
    ] = 0.0,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Let the items that promise most spend the campaign's budget again; `resume` then works on them."""
    import math

    from agentforge.campaigns.allocator import Prices
    from agentforge.campaigns.extend import extend as extended

    with _options.store(config, create=False) as store:
        found = extended(
            store,
            name,
            objective,
            seconds=math.inf if minutes is None else 60 * minutes,
            dollars=math.inf if dollars is None else dollars,
            prices=Prices(hour=hour_dollars, device_hour=device_hour_dollars),
        )
    if json:
        _print.as_json(found)
        return
    most = "without a limit" if found.most_dollars is None else f"at most {found.most_dollars:.2f}"
    known = sum(visit.dollars or 0.0 for visit in found.visits)
    expected = f"at least {known:.2f}" if found.dollars is None and known else _dollars(found.dollars)
    _print.line(
        f"{len(found.visits)} visits for {found.objective}: about {_duration(found.seconds)} and "
        f"{expected} dollars ({most})"
    )
    rows = (
        (v.problem, v.arm, f"{v.gain:.3f}", f"{v.seconds:.0f} s", _dollars(v.dollars)) for v in found.visits
    )
    _print.table(["problem", "arm", "expected gain", "time", "dollars"], rows)


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:.2f}"
