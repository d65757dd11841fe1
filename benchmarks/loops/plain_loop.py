"""A plain loop `y = model(x)` in a process of its own, as a user would time it, for `agreement.py`.

Nothing of the referee runs here. All parties live in one process with the user's environment. Inputs rotate
over buffers that together exceed the last-level cache. A second loop writes each input directly before its
call, off the clock, as the layer before does in a model, and as the referee does. A third one also waits
before each call, so that threads sleep and processors halt, as the referee's stopped workers do.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from .process import started

PARTIES = ("eager", "control", "compile", "ours")
LOOPS = ("rotating", "written", "paused")
Series = dict[str, dict[str, list[float]]]
"""Seconds per call by loop and party, one entry per block."""
Turn = tuple[float, float]
"""Seconds and page faults per call, the mean of a turn."""

_TURN_S, _UNTIMED, _LEAST, _MOST = 0.01, 2, 3, 200
"""A turn takes about this time, and has a few untimed calls and this number of timed ones."""
_LONG_S, _FEW = 0.1, 2
"""Calls longer than this come a few at a time."""
_BUFFERS = 3
_PAUSE_S, _MOST_PAUSED = 0.005, 10
"""Seconds before each call of the loop with pauses, longer than a pool's threads spin; its most calls."""
_READY_S = 600.0


@dataclass(frozen=True)
class Job:
    """What a loop runs."""

    reference: str
    """Source in KernelBench's convention."""
    solution: Path
    """Folder with a built solution."""
    threads: int
    cache_bytes: int
    """Of the last-level cache."""
    parties: tuple[str, ...]
    """Of `PARTIES`."""
    compiled: Path
    """Inductor's cache folder."""


class PlainLoop:
    """A process with the loops, forked from one that has imported torch; it waits between turns."""

    def __init__(self, job: Job) -> None:
        self._parties = job.parties
        self._connection, self._process = started(serve, job)
        self._receive(_READY_S)

    def block(self) -> dict[str, dict[str, Turn]]:
        """One turn of each party in random order, in each loop, by loop and party."""
        found: dict[str, dict[str, Turn]] = {loop: {} for loop in LOOPS}
        for party in random.sample(self._parties, len(self._parties)):
            for loop in random.sample(LOOPS, len(LOOPS)):
                self._connection.send((party, loop))
                found[loop][party] = self._receive(_READY_S)
        return found

    def _receive(self, seconds: float) -> Any:
        if not self._connection.poll(seconds):
            raise SystemExit("the plain loop does not answer")
        answer = self._connection.recv()
        if isinstance(answer, str):
            raise SystemExit(f"the plain loop failed: {answer}")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()


def serve(connection: Connection, job: Job) -> None:
    """Build the parties, then answer each request with the seconds of one call."""
    try:
        loops = _Loops(job)
        connection.send((0.0, 0.0))
        while True:
            party, loop = connection.recv()
            connection.send(loops.turn(party, loop))
    except EOFError:
        return
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")


class _Loops:
    """The parties of one process, and the buffers of their inputs."""

    def __init__(self, job: Job) -> None:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(job.compiled)
        torch.set_num_threads(job.threads)
        torch.set_grad_enabled(False)
        reference = _module("reference_of_the_loop", job.reference)
        sys.path.insert(0, str(job.solution))
        ours = importlib.import_module("model_new")
        self._parties = {
            name: _constructed(ours.ModelNew if name == "ours" else reference.Model) for name in job.parties
        }
        weights = next(model for name, model in self._parties.items() if name != "ours").state_dict()
        for model in self._parties.values():
            model.load_state_dict(weights)
        if "compile" in self._parties:
            self._parties["compile"] = torch.compile(self._parties["compile"])
        first = reference.get_inputs()
        nbytes = sum(t.nbytes for t in first)
        number = max(_BUFFERS, -(-2 * job.cache_bytes // nbytes))
        self._buffers = [first, *([t.clone() for t in reference.get_inputs()] for _ in range(number - 1))]
        self._output: Any = None
        self._number = itertools.count()
        self._check()
        self._calls = self._calls_of_a_turn()

    def _check(self) -> None:
        expected = self._parties["eager"](*self._buffers[0])
        for party in self._parties.values():
            torch.testing.assert_close(party(*self._buffers[0]), expected, rtol=2e-2, atol=1e-2)

    def _calls_of_a_turn(self) -> int:
        took = min(self._rotating(self._parties["eager"], 1) for _ in range(_BUFFERS))
        return _FEW if took > _LONG_S else min(_MOST, max(_LEAST, round(_TURN_S / took)))

    def turn(self, party: str, loop: str) -> Turn:
        """One turn."""
        model, calls = self._parties[party], self._calls
        run = self._rotating if loop == "rotating" else self._written
        if loop == "paused":
            run, calls = partial(self._written, pause_s=_PAUSE_S), min(calls, _MOST_PAUSED)
        run(model, _UNTIMED if calls > _FEW else 1)
        faults = _faults()
        seconds = run(model, calls)
        return seconds, (_faults() - faults) / calls

    def _rotating(self, model: Callable[..., Any], calls: int) -> float:
        buffers = [self._buffers[next(self._number) % len(self._buffers)] for _ in range(calls)]
        begin = time.perf_counter()
        for arguments in buffers:
            self._output = model(*arguments)  # releases the previous one, as a user's loop does
        return (time.perf_counter() - begin) / calls

    def _written(self, model: Callable[..., Any], calls: int, pause_s: float = 0.0) -> float:
        seconds = 0.0
        for _ in range(calls):
            number = next(self._number)
            arguments = self._buffers[number % _BUFFERS]
            for target, source in zip(
                arguments, self._buffers[(number + 1) % len(self._buffers)], strict=True
            ):
                np.copyto(_bytes(target), _bytes(source))  # one thread, as the referee's
            time.sleep(pause_s)
            begin = time.perf_counter()
            self._output = model(*arguments)
            seconds += time.perf_counter() - begin
        return seconds / calls


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _bytes(tensor: torch.Tensor) -> Any:
    return tensor.reshape(-1).view(torch.uint8).numpy()


def _module(name: str, source: str) -> Any:
    spec = importlib.util.spec_from_loader(name, loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def _constructed(model: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    torch.manual_seed(0)
    return model().eval()
