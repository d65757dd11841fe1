"""A measured party: a worker with a model in it, and what its failures mean."""

from __future__ import annotations

import secrets
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from agentforge.schema import EvaluationStatus, HarnessError

from .leaves import Leaf, LeafSpec, parse_leaves, views
from .memory import Block, Layout, aligned
from .process import Worker
from .wire import ChannelClosed, ChannelTimeout, Message, ProtocolViolation, encode

_clock = time.perf_counter_ns
_WATCH_S = 0.2
_MEMORY_WORDS = (
    "can't allocate memory",
    "not enough memory",
    "bad_alloc",
    "MemoryError",
    "Cannot allocate memory",
)

Part = tuple[int, int, int]
"""Leaf, first flat element, count."""


@dataclass
class PartyFailure(Exception):
    """A party did not do what it was asked; for a candidate this is the verdict."""

    status: EvaluationStatus
    reason: str
    log: str = ""

    def __str__(self) -> str:
        return self.reason


class Floor:
    """Who may run: at most one party at a time, the others' process groups are stopped.

    Idle OpenMP threads spin for a while after their last call and would wreck whoever runs next.
    """

    def __init__(self) -> None:
        self._holder: Worker | None = None

    def take(self, worker: Worker) -> None:
        """Stop whoever ran last, let `worker` run."""
        if self._holder is not worker:
            if self._holder is not None:
                self._holder.stop()
            self._holder = worker
        worker.resume()


class Party:
    """Sends requests to one worker and judges how they end. Not thread-safe.

    Args:
        name: `eager`, `control`, `compile`, `candidate`.
        worker: forked and greeted.
        floor: shared by all parties that may not run at the same time.
        call_timeout_s: for each request.
        memory_bytes: resident memory of the worker and its children beyond which it is killed; None for
            trusted ones.
    """

    def __init__(
        self,
        name: str,
        worker: Worker,
        floor: Floor,
        *,
        call_timeout_s: float,
        memory_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.worker = worker
        self._floor = floor
        self.call_timeout_s = call_timeout_s
        self._memory_bytes = memory_bytes
        self._outputs: Block | None = None
        self.claimed_ns = 0
        """What the worker said of its last call's time: a hint."""

    # -- requests

    def request(
        self, body: Mapping[str, Any], fds: Sequence[int] = (), timeout_s: float | None = None
    ) -> dict[str, Any]:
        """One request and its answer.

        Raises:
            PartyFailure
        """
        token = secrets.token_hex(8)
        data = encode({**body, "id": token})
        self._floor.take(self.worker)
        return self._exchange(data, fds, token, timeout_s or self.call_timeout_s)[0]

    def call(self, slot: int) -> int:
        """Run the model on a slot; nanoseconds by this process's clock.

        Raises:
            PartyFailure
        """
        return self._call(slot, put=False)[0]

    def call_and_fetch(self, slot: int) -> tuple[int, list[Leaf]]:
        """The same, and the whole output, whose way back is in the time: nothing can be put off.

        Raises:
            PartyFailure
        """
        took, reply = self._call(slot, put=True)
        return took, self.leaves(reply)

    def _call(self, slot: int, *, put: bool) -> tuple[int, dict[str, Any]]:
        token = secrets.token_hex(8)
        data = encode({"op": "call", "slot": slot, "put": put, "id": token})
        self._floor.take(self.worker)
        reply, took = self._exchange(data, (), token, self.call_timeout_s)
        claimed = reply.get("ns")
        self.claimed_ns = claimed if isinstance(claimed, int) else 0
        return took, reply

    def _exchange(
        self, data: bytes, fds: Sequence[int], token: str, timeout_s: float
    ) -> tuple[dict[str, Any], int]:
        try:
            start = _clock()
            self.worker.channel.send_encoded(data, fds)
            message = self._await(timeout_s)
            took = _clock() - start
        except ChannelTimeout:
            raise self._failed(EvaluationStatus.TIMEOUT, f"no answer within {timeout_s:g} s") from None
        except ProtocolViolation as error:
            raise self._failed(EvaluationStatus.CHEATING, f"it answered with {error}") from None
        except ChannelClosed:
            raise self._died() from None
        if message.body.get("id") != token:
            raise self._failed(
                EvaluationStatus.CHEATING, "it answered before it was asked: a forged message on the channel"
            )
        if "error" in message.body:
            raise self._refused(message.body["error"])
        return message.body, took

    def _await(self, timeout_s: float) -> Message:
        deadline = time.monotonic() + timeout_s
        while self._memory_bytes is not None:
            wait = min(_WATCH_S, deadline - time.monotonic())
            if wait <= 0:
                raise ChannelTimeout
            if select.select([self.worker.channel], [], [], wait)[0]:
                break
            if self.worker.resident_bytes() > self._memory_bytes:
                raise self._failed(
                    EvaluationStatus.OUT_OF_MEMORY,
                    f"it took more than {self._memory_bytes >> 20} MiB of memory",
                )
        return self.worker.channel.receive(max(0.001, deadline - time.monotonic()))

    # -- failures

    def _failed(self, status: EvaluationStatus, reason: str) -> PartyFailure:
        log = self.worker.log_tail()
        self.worker.kill()
        return PartyFailure(status, reason, log)

    def _died(self) -> PartyFailure:
        code = self.worker.wait(5.0)
        log = self.worker.log_tail()
        self.worker.kill()
        if any(word in log for word in _MEMORY_WORDS) or code == 137:
            return PartyFailure(EvaluationStatus.OUT_OF_MEMORY, "its process ran out of memory", log)
        if code == 152:
            return PartyFailure(EvaluationStatus.TIMEOUT, "its process used up its CPU time", log)
        if code is None or code < 128:
            return PartyFailure(
                EvaluationStatus.CRASHED, f"its process left (exit code {code}) instead of answering", log
            )
        return PartyFailure(EvaluationStatus.CRASHED, f"its process died of {_signal_name(code - 128)}", log)

    def _refused(self, error: Any) -> PartyFailure:
        error = error if isinstance(error, dict) else {}
        kind, message = str(error.get("type", ""))[:200], str(error.get("message", ""))[:2000]
        log = str(error.get("traceback", ""))[:8000]
        text = f"{kind}: {message}" if message else kind
        if kind == "MemoryError" or any(word in message for word in _MEMORY_WORDS):
            return PartyFailure(EvaluationStatus.OUT_OF_MEMORY, text, log)
        if kind == "UnusableOutput":
            lazy = "tensor subclass" in message
            return PartyFailure(
                EvaluationStatus.CHEATING if lazy else EvaluationStatus.INCORRECT_SHAPE, message, log
            )
        if kind in ("SyntaxError", "IndentationError", "TabError"):
            return PartyFailure(EvaluationStatus.COMPILE_ERROR, text, log)
        return PartyFailure(EvaluationStatus.RUNTIME_ERROR, text, log)

    # -- outputs

    def configure(self, body: Mapping[str, Any], inputs: Block, outputs_bytes: int) -> None:
        """Give it a workload's input slots and fresh memory for its outputs."""
        self.release()
        self._outputs = Block.create(f"outputs-{self.name}", outputs_bytes)
        self._outputs.seal_size()
        self.request({"op": "workload", **body}, [inputs.fd, self._outputs.fd])

    def fetch(self, slot: int, which: str = "last") -> tuple[list[Leaf], bool]:
        """All of an output, as tensors of our own, and whether it shares memory with the inputs.

        Args:
            slot: whose inputs the aliases are looked up in.
            which: `last`, `previous` or `inputs`.
        """
        reply = self.put(slot, which)
        return self.leaves(reply), reply.get("aliases") is True

    def put(self, slot: int, which: str = "last") -> dict[str, Any]:
        """Have all of an output put in shared memory; `leaves` and `pieces` read the answer."""
        return self.request({"op": "put", "which": which, "parts": None, "slot": slot})

    def pieces(self, reply: Mapping[str, Any], parts: Sequence[Part]) -> list[torch.Tensor]:
        """Some flat ranges of a whole output that was put, copied; a part that is not there comes empty."""
        specs, found = self._described(reply), []
        assert self._outputs is not None
        for leaf, first, count in parts:
            layout = specs[leaf].layout if leaf < len(specs) else None
            tensor = self._outputs.tensor(layout) if layout is not None else torch.empty(0)
            found.append(tensor.reshape(-1)[first : first + count].clone())
        return found

    def leaves(self, reply: Mapping[str, Any]) -> list[Leaf]:
        """What an answer describes, copied out of the memory that the worker can write to."""
        assert self._outputs is not None
        return [
            Leaf(x.path, x.value.clone() if isinstance(x.value, torch.Tensor) else x.value)
            for x in views(self._described(reply), self._outputs)
        ]

    def _described(self, reply: Mapping[str, Any]) -> list[LeafSpec]:
        assert self._outputs is not None
        try:
            return parse_leaves(reply, self._outputs.nbytes)
        except ProtocolViolation as error:
            raise self._failed(EvaluationStatus.CHEATING, f"it described {error}") from None

    def peek(self, layouts: Sequence[Layout]) -> list[torch.Tensor]:
        """Views of what a trusted worker put at known places of its output memory."""
        assert self._outputs is not None
        return [self._outputs.tensor(layout) for layout in layouts]

    def fetch_parts(self, slot: int, parts: Sequence[Part], dtypes: Sequence[str]) -> list[Any]:
        """Some flat ranges of the last output, chosen after the call.

        Args:
            slot: of the call.
            parts: ranges.
            dtypes: of each part's leaf, as the reference has them.
        """
        assert self._outputs is not None
        self.request({"op": "put", "which": "last", "parts": [list(p) for p in parts], "slot": slot})
        pieces, offset = [], 0
        for (_, _, count), dtype in zip(parts, dtypes, strict=True):
            layout = Layout.dense((count,), dtype, offset)
            pieces.append(self._outputs.tensor(layout).clone())
            offset += aligned(layout.nbytes)
        return pieces

    def release(self) -> None:
        if self._outputs is not None:
            self._outputs.close()
            self._outputs = None

    def close(self) -> None:
        """Kill the worker, give the memory back."""
        self.worker.kill()
        self.release()


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def trusted(failure: PartyFailure, what: str) -> HarnessError:
    """The error to raise where a trusted party failed."""
    return HarnessError(f"{what}: {failure.reason}")
