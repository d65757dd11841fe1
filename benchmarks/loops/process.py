"""A process of its own for what is timed, forked from one that has imported torch."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeVar

Job = TypeVar("Job")


def started(serve: Callable[[Connection, Job], None], job: Job) -> tuple[Connection, BaseProcess]:
    """Start `serve(connection, job)`, a function of a module that the forkserver imports first.

    Returns:
        Our end of the connection, and the process.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([serve.__module__, "torch._inductor.compile_fx"])
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, job), daemon=True)
    process.start()
    theirs.close()
    return ours, process
