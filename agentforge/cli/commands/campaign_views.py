"""`agentforge campaign list | status | report | compare | export | import | rm`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentforge.views import output as _print
from agentforge.views import text as _text

from .. import _options
from .run_files import delete_runs

if TYPE_CHECKING:
    from agentforge.campaigns.status import CampaignStatus, RunningItem
    from agentforge.schema import Campaign
    from agentforge.store import Store
    from agentforge.store.campaigns import Progress


def register(campaign: typer.Typer) -> None:
    """Add the commands."""
    campaign.command(name="list")(list_campaigns)
    campaign.command(name="status")(status)
    campaign.command(name="report")(report)
    campaign.command(name="compare")(compare)
    campaign.command(name="export")(export)
    campaign.command(name="import")(import_file)
    campaign.command(name="rm")(remove)


def list_campaigns(config: _options.Config = None, json: _options.Json = False) -> None:
    """List all campaigns, newest first."""
    from agentforge.schema import NoDatabaseError

    found: list[tuple[Campaign, Progress]] = []
    with suppress(NoDatabaseError), _options.store(config, create=False) as store:
        found = [(c, store.campaign_progress(c.name)) for c in store.list_campaigns()]
    if json:
        _print.as_json({"campaigns": [{**c.model_dump(mode="json"), "states": p.states} for c, p in found]})
        return
    _print.table(
        ["campaign", "suite", "arms", "state", "over", "items", "created"],
        (
            (
                c.name,
                c.suite,
                ", ".join(arm.name for arm in c.arms),
                "finished" if p.finished else c.state.value,
                p.over,
                p.items,
                f"{c.created:%Y-%m-%d %H:%M}",
            )
            for c, p in found
        ),
    )


def status(
    name: _options.CampaignName,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it anew, at most every 2 s, until no item is left.")
    ] = False,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Show how far a campaign is: items by state, time, tokens, dollars and device-seconds."""
    from agentforge.campaigns.status import status_of
    from agentforge.schema import UsageError

    if watch and json:
        raise UsageError("--watch has no --json: call `campaign status --json` as often as you need it")
    with _options.store(config, create=False) as store:
        if watch:
            _watch(store, name)
        else:
            show_status(status_of(store, name), as_json=json)


_REST = 20.0
"""Rest between two looks of `--watch`, over the time that a look takes."""


def _watch(store: Store, name: str) -> None:
    """A live view; without a terminal, only its last state is printed."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from agentforge.campaigns.status import status_of
    from agentforge.campaigns.worker import POLL_S, patiently

    console = _print.console()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            begun = time.monotonic()
            found = patiently(lambda: status_of(store, name))
            lines = [Text(line) for line in _status_lines(found)]
            grids = [_print.grid(head, rows, console.width) for head, rows in _status_tables(found)]
            live.update(Group(*lines, *grids), refresh=True)
            if found.finished:
                return
            # To read a large database takes processors, which may be timed.
            time.sleep(max(POLL_S, _REST * (time.monotonic() - begun)))


def show_status(status: CampaignStatus, *, as_json: bool, **counts: int) -> None:
    """The status on stdout; with `--json`, also what the command counted."""
    if as_json:
        _print.as_json({**status.model_dump(mode="json"), "finished": status.finished, **counts})
        return
    for line in _status_lines(status):
        _print.line(line)
    for head, rows in _status_tables(status):
        _print.table(head, rows)


def _status_lines(status: CampaignStatus) -> list[str]:
    said = ", ".join(f"{count} {state.value}" for state, count in status.states.items() if count)
    left = f", about {_text.seconds(status.seconds_left)} left" if status.seconds_left else ""
    return [
        f"campaign {status.campaign.name} ({status.campaign.state.value}): {said}{left}",
        f"{status.seconds:.0f} s of ended tries, {status.device_seconds:.0f} device-seconds, "
        f"{status.tokens} tokens, {_dollars(status)}",
    ]


def _dollars(status: CampaignStatus) -> str:
    """The cost of language models, as far as it is known."""
    if not status.unpriced_calls:
        return f"{status.dollars:.4f} dollars"
    return f"at least {status.dollars:.4f} dollars" if status.dollars else "unknown dollars"


def _status_tables(status: CampaignStatus) -> Iterator[tuple[list[str], list[tuple[object, ...]]]]:
    if status.running:
        rows: list[tuple[object, ...]] = [
            (i.problem, i.arm, _words(i), i.worker, i.tries, i.run) for i in status.running
        ]
        yield ["running", "arm", "said last", "worker", "try", "run"], rows
    if status.given_back:
        yield (
            ["given back", "arm", "tries", "detail"],
            [(i.problem, i.arm, i.tries, i.reason) for i in status.given_back],
        )
    if status.stopped:
        yield (
            ["stopped", "arm", "state", "detail"],
            [(i.problem, i.arm, i.state.value, i.reason) for i in status.stopped],
        )


def _words(item: RunningItem) -> str:
    """What it does or waits for."""
    return f"no heartbeat for {item.silent_s:.0f} s; before: {item.words}" if item.abandoned else item.words


Format = Literal["markdown", "html", "json", "csv"]


def report(
    name: _options.CampaignName,
    form: Annotated[Format, typer.Option("--format", help="Of the report.")] = "markdown",
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="NAME", help="Published figures beside ours (repeatable)."),
    ] = None,
    out: _options.OutFile = None,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Write the scores: fast_p, verified, correct, means, costs, and each problem.

    A campaign that goes on is reported as far as it is.
    """
    from agentforge.campaigns.page import html
    from agentforge.campaigns.render import as_csv, markdown
    from agentforge.campaigns.report import beside, build_report
    from agentforge.schema import UsageError

    if json and out is None and form in ("html", "csv"):
        raise UsageError(f"--json prints the report as JSON: leave out --format {form}, or add --out FILE")
    with _options.store(config, create=False) as store:
        found = beside(build_report(store, name), against or ())
    if form == "json" or (json and out is None):
        text = _print.json_text(found) + "\n"
    else:
        text = {"markdown": markdown, "html": html, "csv": as_csv}[form](found)
    if out is None:
        typer.echo(text, nl=False)
        return
    _options.write_out(out, text)
    _written([out], as_json=json)


def _written(files: list[Path], *, as_json: bool) -> None:
    if as_json:
        _print.as_json({"files": [str(file) for file in files]})
    else:
        for file in files:
            _print.line(str(file))


def compare(
    a: Annotated[str, typer.Argument(help="CAMPAIGN/ARM, or a campaign with one arm.")],
    b: Annotated[str, typer.Argument(help="What to compare it with, in the same form.")],
    baseline: Annotated[
        str, typer.Option("--baseline", help="Of the speedups: best, eager or compile.")
    ] = "best",
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Compare two arms on the problems that both have ended, in pairs."""
    from agentforge.campaigns.compare import compare as compared

    with _options.store(config, create=False) as store:
        found = compared(store, a, b, baseline=baseline)
    if json:
        _print.as_json(found)
        return
    _print.line(f"A = {found.a}, B = {found.b}, {found.problems} problems that both have ended")
    _print.line(
        f"verified by both {found.both}, only by A {found.only_a}, only by B {found.only_b}, by none "
        f"{found.neither} (McNemar p = {found.solved_p:.3g})"
    )
    if found.measured < found.both:
        _print.line(f"{found.measured} of {found.both} were measured against {found.baseline}")
    if found.ratio is not None:
        tested = "" if found.ratio_p is None else f" (Wilcoxon p = {found.ratio_p:.3g})"
        _print.line(f"speedup of A / B over {found.baseline}, if both are verified: {found.ratio}{tested}")
    for what, ratio in (("wall time", found.seconds_ratio), ("dollars", found.dollars_ratio)):
        if ratio is not None:
            _print.line(f"{what} of A / B: {ratio:.2f}")
    for text in found.differs:
        _print.line(f"what differs: {text}")


def export(
    name: _options.CampaignName,
    place: Annotated[Path, typer.Argument(metavar="PLACE", help="Folder, or file, to write to.")],
    form: Annotated[
        Literal["suite", "artifacts", "state"],
        typer.Option(
            "--format",
            help="suite: a folder in the layout of the campaign's suite. artifacts: a folder of artifacts, "
            "built here. state: a file for `campaign import`.",
        ),
    ] = "suite",
    solutions: Annotated[
        bool,
        typer.Option(
            "--solutions",
            help="With --format state: also the text of solutions and problems, so that the other machine "
            "can write artifacts.",
        ),
    ] = False,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Write the results: kernels, evaluations and baseline times, or a state to continue elsewhere."""
    from agentforge.campaigns.exports import elsewhere, export_artifacts, export_campaign, not_built
    from agentforge.campaigns.exports.state import export_state
    from agentforge.campaigns.report import build_report
    from agentforge.exports import leaderboard_limits
    from agentforge.schema import UsageError

    if solutions and form != "state":
        raise UsageError("--solutions goes with --format state: the other formats have them in any case")
    with _options.store(config, create=False) as store:
        lacking: tuple[str, ...] = ()
        if form == "state":
            export_state(store, name, place, _options.settings(config).home, solutions=solutions)
            files = [place]
        else:
            found = build_report(store, name)
            lacking = elsewhere(store, found)
            if form == "artifacts":
                files = export_artifacts(store, found, place, _options.settings(config).cache)
            else:
                files = export_campaign(store, found, place)
                if without := not_built(store, found):
                    _print.aside(
                        "left out, because SOL-ExecBench forbids load and load_inline of torch, with which "
                        f"they compile ({len(without)}): {', '.join(without)}"
                    )
                if found.campaign.suite.startswith("gpu-mode:"):
                    for limit in leaderboard_limits(files):
                        _print.aside(limit)
    if json:
        _print.as_json({"files": [str(file) for file in files], "elsewhere": lacking})
        return
    _written(files, as_json=False)
    if lacking:
        _print.aside(
            f"solutions that only the database where they were measured has are left out ({len(lacking)}): "
            f"{', '.join(lacking)}"
        )


def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `export --format state`.")],
    suite: Annotated[
        str, typer.Option("--suite", help="Where its problems are on this machine: NAME:PLACE.")
    ] = "",
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Take over a campaign from another machine: `resume` then works on the rest."""
    from agentforge.campaigns.exports.state import read_state
    from agentforge.campaigns.exports.state_import import import_state
    from agentforge.campaigns.start import located
    from agentforge.campaigns.status import status_of

    state = read_state(file)
    with _options.store(config) as store:
        found = import_state(store, state, located(suite) if suite else "")
        left = f"; {found.left} are left out, because their items have others here, or a worker"
        _print.aside(f"{found.taken} results were taken from the file{left if found.left else ''}")
        show_status(status_of(store, found.name), as_json=json, taken=found.taken, left=found.left)


def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of campaigns.")],
    runs: Annotated[bool, typer.Option("--runs", help="Remove the runs of their items too.")] = False,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Remove campaigns; what was learned is kept, and so are their runs without --runs."""
    settings, wanted = _options.settings(config), list(dict.fromkeys(names))
    with _options.store(config, create=False) as store:
        found = set[str]()
        for name in wanted:
            store.reap_items(name)
            store.check_idle(name)
            found |= {run for of_item in store.campaign_runs(name).values() for run in of_item}
        removed = sorted(found & {one.id for one in store.list_runs()}) if runs else []
        # before the campaigns: without them, nothing would name the rest
        delete_runs(store, settings, removed)
        for name in wanted:
            store.delete_campaign(name)
    if json:
        _print.as_json({"removed": wanted, "runs": removed})
    else:
        also = f", and {len(removed)} runs" if runs else ""
        _print.line(f"removed: {', '.join(wanted)}{also}")
