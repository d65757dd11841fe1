"""`agentforge runs compare | export | artifact | rm`, and `agentforge export` of kernels that won."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentforge.views import output as _print

from .. import _options

if TYPE_CHECKING:
    from agentforge.analysis import Report
    from agentforge.config import Settings
    from agentforge.schema import Run
    from agentforge.store import Store

FORMAT = "agentforge-run-1"
"""Names the layout of an exported run."""
_DAY_S = 24 * 3600
"""Age of a file of weights below which a run that is not in the database yet may need it."""


def compare_runs(
    runs: _options.RunIdentifiers, config: _options.Config = None, json: _options.Json = False
) -> None:
    """Compare runs: what each reached end to end, and at each region that they share."""
    from agentforge.analysis import build_report

    with _options.store(config, create=False) as store:
        reports = [build_report(store, store.get_run(run).id) for run in dict.fromkeys(runs)]
    if json:
        bodies = [{"headline": r.headline, **r.model_dump(mode="json")} for r in reports]
        _print.as_json({"runs": bodies})
        return
    _print.table(
        ["#", "run", "target", "status", "mode", "over eager", "over torch.compile", "attempts", "used"],
        (
            (
                number,
                r.run.id,
                r.run.name,
                r.run.status.value,
                r.mode,
                _end_to_end(r, "eager"),
                _end_to_end(r, "compile"),
                r.attempts,
                f"{r.seconds:.0f} s",
            )
            for number, r in enumerate(reports, 1)
        ),
    )
    names = {region.definition: region.name for r in reports for region in r.regions}
    _print.table(
        ["region over eager", *(f"#{number}" for number, _ in enumerate(reports, 1))],
        ((name, *(_region(r, definition) for r in reports)) for definition, name in names.items()),
    )


def _end_to_end(report: Report, baseline: str) -> str:
    found = report.end_to_end.speedup.get(baseline) if report.end_to_end else None
    return str(found) if found else "-"


def _region(report: Report, definition: str) -> str:
    region = next((r for r in report.regions if r.definition == definition), None)
    if region is None:
        return "-"
    found = region.speedup.get("eager")
    return f"{found} {region.strategy}" if found else region.outcome


def export_run(
    run: _options.RunIdentifier,
    out: _options.OutFile = None,
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Write everything that is stored of a run as one JSON object.

    With --out, stdout says what was written.
    """
    with _options.store(config, create=False) as store:
        whole = _everything(store, store.get_run(run).id)
    if out is None:
        _print.as_json(whole)
        return
    _options.write_out(out, _print.json_text(whole) + "\n")
    said = {"run": whole["run"]["id"], "file": str(out), "bytes": out.stat().st_size}
    if json:
        _print.as_json(said)
    else:
        _print.line(f"run {said['run']}: {said['bytes']} bytes in {out}")


def _everything(store: Store, run: str) -> dict[str, Any]:
    found, attempts = store.get_run(run), store.attempts(run)
    solutions = dict.fromkeys(a.solution for a in attempts if a.solution)
    evaluations = dict.fromkeys(a.evaluation for a in attempts if a.evaluation)
    whole = {
        "run": found,
        "target": store.get_target(found.target),
        "profile": store.get_profile(run),
        "records": store.records(run),
        "attempts": attempts,
        "solutions": {name: store.get_solution(name) for name in solutions},
        "evaluations": {name: store.get_evaluation(name) for name in evaluations},
        "calls": store.calls(run),
        "events": store.events(run),
    }
    return {"format": FORMAT, **_print.plain(whole)}


def write_artifact(
    run: _options.RunIdentifier,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write to.")],
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Write a run's artifact from the database, for example on another machine, and build it there."""
    from agentforge.runs.artifacts import fetch_artifact

    with _options.store(config, create=False) as store:
        result = fetch_artifact(store, run, folder, cache=_options.settings(config).cache)
    if json:
        _print.as_json({"files": [str(folder)]})
    else:
        _print.line(f"{folder}: {result.mode}, {result.summary}")


def delete_runs(store: Store, settings: Settings, runs: Collection[str]) -> None:
    """Remove runs from the database, their folders, and the weights of live modules that no other run names.

    Weights stay if they are younger than a day, because a run may begin with them now, or if the database is
    not the home's own, because runs in that one may read them.

    Raises:
        BusyError: a process works on one of them, and nothing was removed.
    """
    from agentforge.schema import BusyError

    if busy := sorted(store.worked_on().intersection(runs)):
        raise BusyError(
            f"nothing was removed, because a process works on run {busy[0]}: wait for it, or end it first"
        )
    weights = _weights(store, (store.get_run(run) for run in runs), [*(settings.home / "live").glob("*.pt")])
    for run in runs:
        store.delete_run(run)
        shutil.rmtree(settings.runs / run, ignore_errors=True)
    if weights and settings.database_url is None:
        for file in weights - _weights(store, store.list_runs(), weights):
            with suppress(FileNotFoundError):
                if time.time() - file.stat().st_mtime > _DAY_S:
                    file.unlink()


def _weights(store: Store, runs: Iterable[Run], files: Collection[Path]) -> set[Path]:
    """The files that a run's target reads."""
    from agentforge.schema import UsageError

    found = set[Path]()
    for run in runs if files else ():
        with suppress(UsageError):  # a run may be here without its target
            source = store.get_target(run.target).definition.reference
            found |= {file for file in files if repr(str(file)) in source}
    return found


def remove_runs(
    runs: _options.RunIdentifiers, config: _options.Config = None, json: _options.Json = False
) -> None:
    """Remove runs with their attempts, events, folders and weights; what was learned from them is kept.

    An artifact that --out put elsewhere stays. Weights stay if they are younger than a day, or if
    database_url names the database.
    """
    settings = _options.settings(config)
    with _options.store(config, create=False) as store:
        removed = list(dict.fromkeys(store.get_run(run).id for run in runs))
        delete_runs(store, settings, removed)
    if json:
        _print.as_json({"removed": removed})
    else:
        _print.line(f"removed: {', '.join(removed)}")


def register(app: typer.Typer) -> None:
    """Add `agentforge export`."""

    @app.command(name="export")
    def export_command(
        source: Annotated[
            str, typer.Argument(metavar="RUN|ARTIFACT", help="A run, or an artifact's folder.")
        ],
        folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write to.")],
        to: Annotated[
            str, typer.Option("--to", help="hf-kernels, flashinfer, kernelbench, gpu-mode, or a plug-in's.")
        ],
        config: _options.Config = None,
        json: _options.Json = False,
    ) -> None:
        """Write the kernels that won as other projects load them."""
        from agentforge.exports import (
            layouts,
            leaderboard_limits,
            winners_of_artifact,
            winners_of_run,
            write_export,
        )

        layouts.check(to)
        if Path(source).is_dir():
            kernels = winners_of_artifact(Path(source))
        else:
            with _options.store(config, create=False) as store:
                kernels = winners_of_run(store, source)
        files = write_export(to, kernels, folder)
        for limit in leaderboard_limits(files) if to == "gpu-mode" else ():
            _print.aside(limit)
        if json:
            _print.as_json({"files": [str(path) for path in files]})
        else:
            _print.line(f"{len(kernels)} kernels, {len(files)} files in {folder}")
