"""The referee's examination with no sandbox, no trust split, no other process: what these cost is the rest.

Every party is a server of this process, called as a function; a candidate is imported here. The stages, the
number of calls, the comparisons and the build are the referee's own. Only for measuring the referee: a
candidate that cheats wins here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, cast
from unittest import mock

import torch

from agentforge.harness.baseline import BaselineServer
from agentforge.harness.bench import Bench, Course
from agentforge.harness.candidate import Candidate, Workshop
from agentforge.harness.party import Party
from agentforge.harness.placement import Placement
from agentforge.harness.process import Forkserver, Worker, baseline_cache
from agentforge.harness.referee import Referee
from agentforge.harness.server import Server
from agentforge.harness.wire import pair
from agentforge.languages import CommandResult
from agentforge.schema import Evaluation, Solution

_LENGTH_BYTES = 4


class _NoWorker:
    """Where a worker would be: this process, which nobody stops or kills."""

    pid = os.getpid()
    running = True
    stopped = False

    def stop(self) -> None: ...

    def settle(self) -> None: ...

    def resume(self) -> None: ...

    def kill(self) -> None: ...

    def others(self) -> list[int]:
        return []

    def stop_others(self) -> int:
        return 0

    def resident_bytes(self) -> int:
        return 0

    def cpu_seconds(self, others: Sequence[int]) -> float:
        return time.process_time()

    def log_tail(self) -> str:
        return ""


class _LocalParty(Party):
    """A party whose requests are function calls."""

    def __init__(self, name: str, server: Server, floor: Any, threads: int) -> None:
        super().__init__(name, cast(Worker, _NoWorker()), floor, call_timeout_s=600.0)
        self._server = server
        self._threads = threads

    def _exchange(
        self,
        data: bytes,
        fds: Sequence[int],
        token: str,
        timeout_s: float,
        take: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> tuple[dict[str, Any], int]:
        # A server owns the descriptors that it is sent.
        own = tuple(os.dup(fd) for fd in fds)
        body = json.loads(data[_LENGTH_BYTES:])
        torch.set_num_threads(self._threads)
        start = time.perf_counter_ns()
        reply = self._server.answer(body, own)
        if "error" in reply:
            raise self._refused(reply["error"])
        if take is not None:
            # As it would have come through a socket.
            take(json.loads(json.dumps(reply)))
        took = time.perf_counter_ns() - start
        # The referee's own work is done at one thread.
        torch.set_num_threads(1)
        return reply, took


class _LocalWorkshop(Workshop):
    """Builds and imports here."""

    def run(
        self, argv: Sequence[str], *, cwd: Path, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        start = time.perf_counter()
        done = subprocess.run(
            argv, cwd=cwd, env={**os.environ, **(env or {})}, timeout=timeout_s,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return CommandResult(done.returncode, "", done.stdout, time.perf_counter() - start)

    def start(self, solution: Solution, folder: Path, bench: Bench, course: Course) -> Candidate:
        party = _LocalParty("candidate", Server(pair()[0]), self.floor, self.settings.threads)
        candidate = Candidate(party, Path(tempfile.mkdtemp(dir=self.folder)))
        entry = PurePosixPath(solution.entry_file)
        weights = bench.weights
        descriptor = weights.read_only()
        body = {
            "op": "load", "folder": str(folder / entry.parent), "module": entry.stem,
            "class": solution.entry_class, "init": weights.init, "state": weights.state,
            "seed": weights.seed, "threads": self.settings.threads, "compiled": "",
            "device": self.side.device,
        }  # fmt: skip
        candidate.weights = party.request(body, [descriptor])["weights"]
        os.close(descriptor)
        party.configure(course.body(), course.inputs, course.outputs_bytes)
        return candidate


class InProcessReferee(Referee):
    """A referee that trusts everybody."""

    def _open(self) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="in-process-"))
            self._untrusted = self._builder = cast(Forkserver, mock.Mock())

    def _spawn(self, name: str) -> Party:
        return _LocalParty(name, BaselineServer(pair()[0]), self._floor, self.settings.threads)

    def evaluate(self, *args: Any, **kwargs: Any) -> Evaluation:
        with (
            mock.patch("agentforge.harness.referee.Workshop", _LocalWorkshop),
            mock.patch.object(Placement, "place"),  # the threads are this process's
            _compiled_below(self._cache),
        ):
            return super().evaluate(*args, **kwargs)

    def close(self) -> None:
        self.release()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None


@contextmanager
def _compiled_below(cache: Path) -> Iterator[None]:
    with mock.patch.dict(os.environ, baseline_cache(cache)):
        yield
