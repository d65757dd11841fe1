"""What every function for notebooks begins with: a store, a run in it, and the packages of the extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from agentforge.config import load_settings
from agentforge.schema import MachineError, Run, UsageError, pip_install
from agentforge.store import Store

StoreLike = Store | str | None
"""An open store, a database's URL, or None for the one that the settings name, as the command line does."""


@contextmanager
def opened(store: StoreLike) -> Iterator[Store]:
    """The store; closed at the end if it was opened here.

    Raises:
        StoreError: it cannot be opened, or does not exist.
    """
    if isinstance(store, Store):
        yield store
        return
    with Store(store or load_settings().url, create=False) as own:
        yield own


def chosen(store: Store, run: str | None) -> Run:
    """The run of this identifier or unique prefix; the newest if none is named.

    Raises:
        UsageError: there is no such run, or none at all.
    """
    if run is not None:
        return store.get_run(run)
    newest = store.list_runs(limit=1)
    if not newest:
        raise UsageError(
            f"the database {store.where} has no runs: make one with `agentforge optimize MODEL.py`, "
            "or set AGENTFORGE_HOME to where yours are"
        )
    return newest[0]


def package(module: str) -> Any:
    """A module of the extra `notebook`, imported when it is first needed.

    Raises:
        MachineError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MachineError(
            f"this needs the package {error.name or module}: run {pip_install('notebook')}"
        ) from error
