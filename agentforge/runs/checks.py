"""What can be refused before anything is loaded or measured."""

from __future__ import annotations

import os
import symtable
import tempfile
from collections.abc import Callable
from pathlib import Path

from agentforge.config import Settings, check_threads
from agentforge.devices import DeviceSpec, with_threads
from agentforge.frontends import frontends
from agentforge.isolation.sandboxes import sandboxes
from agentforge.ladder import find_device
from agentforge.languages import languages
from agentforge.schema import Budget, MachineError, Permission, RunKind, UsageError
from agentforge.search import allocators, policies
from agentforge.trackers import check_trackers
from agentforge.tuning import check_tuning
from agentforge.whole_file import is_artifact

from ._base import RunStart

_MOST_MINUTES = 525_600


def check_start(
    start: RunStart,
    settings: Settings,
    *,
    device: str,
    out: Path | None,
    permission: Permission | None,
    progress: Callable[[str], None] | None = None,
) -> DeviceSpec:
    """Check everything except the agents, without importing the search.

    Args:
        progress: receives what a GPU's ladder finds.

    Returns:
        The run's device.

    Raises:
        UsageError, MachineError: see the other checks.
    """
    where = with_threads(find_device(device, settings.cache, progress), settings.referee.threads)
    check_run(settings, out)
    check_permission(permission, start.kind, where, ranged=start.ranged)
    start.check(settings, where)
    return where


def check_run(settings: Settings, out: Path | None) -> None:
    """Check everything that does not depend on the kind of run, except the agents.

    Raises:
        UsageError: a setting or `out` cannot be used.
        MachineError: a plug-in's package cannot be imported.
    """
    check_home(settings.home)
    check_out(out)
    check_record(settings.llm.record)
    policies.check(settings.search.policy, settings.search.options)
    allocators.check(settings.search.allocator)
    check_tuning(settings.search.tune)
    check_trackers(settings.trackers, settings.tracker_options)
    check_threads(settings.referee)
    check_minutes(settings.budget)
    check_options(settings)


def check_minutes(budget: Budget) -> None:
    """Refuse a budget of more than a year: no thread can wait so long.

    Raises:
        UsageError: it has more minutes.
    """
    if budget.minutes is not None and budget.minutes > _MOST_MINUTES:
        raise UsageError(
            f"budget.minutes is {budget.minutes:.10g}: give at most {_MOST_MINUTES} (a year) with --minutes"
        )


def check_options(settings: Settings) -> None:
    """Refuse options of languages, frontends and sandboxes that nothing would read.

    Raises:
        UsageError: a name or an option is unknown, or no sandbox is named that the options are for.
        MachineError: a plug-in cannot be imported.
    """
    referee = settings.referee
    for language, options in referee.language_options.items():
        languages.check(language, options)
    for frontend, options in settings.frontend_options.items():
        frontends.check(frontend, options)
    if referee.sandbox != "auto":
        sandboxes.check(referee.sandbox, referee.sandbox_options)
    elif referee.sandbox_options:
        raise UsageError(
            "referee.sandbox_options are for one sandbox, and referee.sandbox is auto: name the sandbox too"
        )


def check_home(home: Path) -> None:
    """Refuse a home folder that cannot be made or written.

    Raises:
        UsageError: it cannot.
    """
    try:
        hindrance = _hindrance(home)
    except OSError as error:
        hindrance = f"of an error ({error.strerror})"
    if hindrance:
        raise UsageError(
            f"the home folder {home} cannot be used, because {hindrance}: set AGENTFORGE_HOME to another one"
        )


def check_out(out: Path | None) -> None:
    """Refuse a folder that the artifact cannot replace.

    Raises:
        UsageError: it contains something else, or it cannot be made, written or replaced.
    """
    if out is None:
        return
    try:
        folder = out.resolve()
        empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
        if not empty and not is_artifact(folder):
            raise UsageError(
                f"--out {out} contains something that is no artifact: choose an empty or new folder"
            )
        hindrance = _hindrance(folder) or _hindrance(folder.parent)
        if folder.is_mount():
            hindrance = f"{folder} is a mount point"
        if Path.cwd().is_relative_to(folder):
            hindrance = "it contains the working folder"
    except OSError as error:
        raise UsageError(f"--out {out} cannot be used ({error.strerror}): choose another folder") from error
    if hindrance:
        raise UsageError(f"--out {out} cannot be made, because {hindrance}: choose another folder")


def check_record(file: Path | None) -> None:
    """Refuse a cassette that cannot be written, before anything that it would record.

    Raises:
        UsageError: it cannot be written.
    """
    if file is None:
        return
    try:
        if file.is_dir():
            hindrance = f"{file} is a folder"
        elif file.exists():
            hindrance = "" if os.access(file, os.R_OK | os.W_OK) else f"{file} is read-only"
        else:
            hindrance = _hindrance(file.absolute().parent)
    except OSError as error:
        hindrance = str(error.strerror)
    if hindrance:
        raise UsageError(f"--record {file} cannot be written, because {hindrance}: choose another file")


def _hindrance(folder: Path) -> str:
    """Why a folder cannot be made or written; empty if it can."""
    above = next(part for part in (folder.absolute(), *folder.absolute().parents) if part.exists())
    why = "is not a folder" if not above.is_dir() else "" if _writable(above) else "cannot be written"
    return f"{above} {why}" if why else ""


def _writable(folder: Path) -> bool:
    """Whether a folder can be made in it. Permissions do not tell: root may write /proc, and yet cannot."""
    try:
        Path(tempfile.mkdtemp(prefix=".agentforge-", dir=folder)).rmdir()
    except OSError:
        return False
    return True


def check_language(name: str) -> None:
    """Refuse a language whose kernels cannot be built on this machine.

    Raises:
        UsageError: no such language.
        MachineError: its compiler is missing.
    """
    availability = languages.create(name).available()
    if not availability.ok:
        raise MachineError(f"kernels in {name} cannot be built here: {availability.detail}")


def check_permission(
    permission: Permission | None, kind: RunKind, device: DeviceSpec, *, ranged: bool = False
) -> None:
    """Refuse a permission that cannot be used, without importing anything.

    Args:
        ranged: the target is a range of shapes, and variants are judged at the measured shapes alone.

    Raises:
        UsageError: the run has no whole model or a range of shapes, the device is no CPU, or the metric's
            file has no such function.
    """
    if permission is None:
        return
    if kind is not RunKind.MODEL:
        raise UsageError("--allow goes with a whole model: leave out --reference, --from and --intent")
    if ranged:
        raise UsageError("--allow and --shapes do not go together: leave one of them out")
    if device.kind != "cpu":
        raise UsageError(
            f"--allow {permission.precision} works on a CPU only, and this run is on {device.name}: "
            "add --device cpu, or leave it out"
        )
    file, name = permission.file, permission.function
    try:
        text = file.read_text(encoding="utf-8")
        table = symtable.symtable(text, str(file), "exec")
    except OSError as error:
        reason = f"--metric {file} cannot be read ({error.strerror})"
        raise UsageError(f"{reason}: it must be a Python file") from error
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"--metric {file} is no valid Python ({error}): fix it") from error
    bound = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    if name not in bound and "import *" not in text:
        functions = ", ".join(c.get_name() for c in table.get_children() if c.get_name() in bound)
        raise UsageError(f"--metric: {file} has no function {name}; it has: {functions or 'none'}")
