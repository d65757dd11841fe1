"""The referee without sandbox and process isolation, to measure what these cost.

Workers and candidates run in this process, as plain function calls. Stages, number of calls, comparisons and
build are the referee's own. Use it only for measuring: a candidate that cheats wins here.
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

from agentforge.languages import CommandResult
from agentforge.referee import EvaluationRequest, OnStage
from agentforge.referee.baselines.baselines import Baselines
from agentforge.referee.baselines.prepared import PreparedWorkload
from agentforge.referee.baselines.reference_worker import BaselineServer
from agentforge.referee.candidates.build import CandidateBuilder
from agentforge.referee.candidates.candidate import Candidate
from agentforge.referee.referee import Referee
from agentforge.referee.timing.cpu_affinity import ProcessorPerThread
from agentforge.referee.workers.client import WorkerClient
from agentforge.referee.workers.environment import baseline_cache
from agentforge.referee.workers.failures import failure_of_reply
from agentforge.referee.workers.process import Forkserver
from agentforge.referee.workers.protocol import pair
from agentforge.referee.workers.server import Server
from agentforge.referee.workers.worker import Worker
from agentforge.schema import Evaluation, HarnessError, Solution

_LENGTH_BYTES = 4


class _NoWorker:
    """Stand-in for a worker process: this process, which is never stopped or killed."""

    pid = os.getpid()
    running = True
    stopped = False
    late_s = 0.0

    def stop(self) -> None: ...

    def settle(self) -> bool:
        return True

    def resume(self) -> None: ...

    def end(self) -> None: ...

    def kill(self) -> None: ...

    def others(self) -> list[int]:
        return []

    def stop_others(self) -> int:
        return 0

    def resident_bytes(self) -> int:
        return 0

    def cpu_seconds(self) -> float:
        return time.process_time()

    def log_tail(self) -> str:
        return ""


class _LocalParty(WorkerClient):
    """A worker client whose requests are function calls."""

    def __init__(self, name: str, server: Server, exclusive: Any, threads: int) -> None:
        super().__init__(name, cast(Worker, _NoWorker()), exclusive, call_timeout_s=600.0)
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
        # a server owns the descriptors that it receives
        own = tuple(os.dup(fd) for fd in fds)
        body = json.loads(data[_LENGTH_BYTES:])
        torch.set_num_threads(self._threads)
        start = time.perf_counter_ns()
        reply = self._server.answer(body, own)
        if "error" in reply:
            raise failure_of_reply(reply["error"], emulated=False)
        if take is not None:
            # as if it had come through a socket
            take(json.loads(json.dumps(reply)))
        took = time.perf_counter_ns() - start
        # the referee itself works with one thread
        torch.set_num_threads(1)
        return reply, took


class _LocalWorkshop(CandidateBuilder):
    """Builds and imports in this process."""

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
        background: bool = False,
    ) -> CommandResult:
        start = time.perf_counter()
        done = subprocess.run(
            argv, cwd=cwd, env={**os.environ, **(env or {})}, timeout=timeout_s,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return CommandResult(done.returncode, "", done.stdout, time.perf_counter() - start)

    def start(
        self, solution: Solution, folder: Path, baselines: Baselines, prepared: PreparedWorkload
    ) -> Candidate:
        client = _LocalParty("candidate", Server(pair()[0]), self.exclusive, self.settings.threads)
        candidate = Candidate(client, Path(tempfile.mkdtemp(dir=self.folder)))
        entry = PurePosixPath(solution.entry_file)
        weights = baselines.weights
        descriptor = weights.read_only()
        body = {
            "op": "load", "folder": str(folder / entry.parent), "module": entry.stem,
            "class": solution.entry_class, "init": weights.init, "state": weights.state,
            "seed": weights.seed, "threads": self.settings.threads, "compiled": "",
            "device": self.backend.device,
        }  # fmt: skip
        candidate.weights = client.request(body, [descriptor])["weights"]
        os.close(descriptor)
        client.configure(prepared.body(), prepared.inputs, prepared.outputs_bytes)
        return candidate


class InProcessReferee(Referee):
    """A referee without process isolation."""

    def _open(self) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="in-process-"))
            self._torch = self._build_server = cast(Forkserver, mock.Mock())

    def _spawn(self, definition: str, name: str, ahead: bool) -> WorkerClient:
        if ahead:
            raise HarnessError("nothing is compiled beside checks that run in the same process")
        return _LocalParty(name, BaselineServer(pair()[0]), self._exclusive, self.settings.threads)

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        with (
            mock.patch("agentforge.referee.referee.CandidateBuilder", _LocalWorkshop),
            mock.patch.object(ProcessorPerThread, "place"),  # the threads belong to this process
            _compiled_below(self._cache),
        ):
            return super().evaluate(request, progress=progress)

    def close(self) -> None:
        self.release()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None


@contextmanager
def _compiled_below(cache: Path) -> Iterator[None]:
    with mock.patch.dict(os.environ, baseline_cache(cache)):
        yield
