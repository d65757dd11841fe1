"""A measured party: a worker with a model in it, and what its failures mean."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch

from agentforge.schema import EvaluationStatus, HarnessError

from . import procfs
from .leaves import Leaf, LeafSpec, parse_leaves, parse_located
from .memory import DTYPES, Block, Layout, aligned, contiguous_strides
from .process import Worker
from .remote import NotAllowed, Unreadable, read_flat, read_leaf, read_runs, runs_of
from .side import CPU, DeviceSide
from .wire import ChannelClosed, ChannelTimeout, Message, ProtocolViolation, encode

_T = TypeVar("_T")
_clock = time.perf_counter_ns
_LAST_WORD_S = 0.2
"""How long is waited for the end of a process whose memory is gone."""
_WATCH_S = 0.2
_MEMORY_WORDS = (
    "can't allocate memory",
    "not enough memory",
    "bad_alloc",
    "MemoryError",
    "Cannot allocate memory",
    "CUDA out of memory",
)

_NOT_SHOWN = ("put", "ready")
"""Requests about a slot that leave what the worker sees there as it is."""

Part = tuple[int, int, int]
"""Leaf, first flat element, count."""


class Contents(Protocol):
    """Where the contents of slots come from."""

    def descriptor(self, slot: int) -> int:
        """The file to hand to a worker."""
        ...


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
        """Stop whoever ran last: `worker` will be next."""
        if self._holder is not worker:
            if self._holder is not None:
                self._holder.stop()
            self._holder = worker


class Party:
    """Sends requests to one worker and judges how they end. Not thread-safe.

    Args:
        name: `eager`, `control`, `compile`, `candidate`.
        worker: forked and greeted.
        floor: shared by all parties that may not run at the same time.
        call_timeout_s: for each request.
        side: where its model runs.
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
        side: DeviceSide = CPU,
        memory_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.worker = worker
        self._floor = floor
        self.call_timeout_s = call_timeout_s
        self._memory_bytes = memory_bytes
        self._contents: Contents | None = None
        self._outputs: Block | None = None
        self._located: list[list[LeafSpec]] = []
        """Where its last outputs lie, the newest last."""
        self._remote = side.remote
        self.readable = not side.remote
        """Its memory can be read while it is stopped; where not, it is asked to put its outputs elsewhere."""
        self.pauses = memory_bytes is not None
        """Stop the worker as soon as it has answered; a trusted one runs on until another one is asked."""
        self._taken: tuple[Sequence[Part], list[LeafSpec], bytearray | None] = ((), [], None)
        self._picked: list[torch.Tensor] = []
        self.beside_ns = 0
        """What the last call took by this process's clock beyond what counts."""
        self.answered_ns = 0
        """What the last call took by this process's clock until its answer was here, and was not read yet."""
        self.claimed_ns = 0
        """What the worker said of its last call's time: a hint."""

    # -- requests

    def request(
        self, body: Mapping[str, Any], fds: Sequence[int] = (), timeout_s: float | None = None
    ) -> dict[str, Any]:
        """One request and its answer. A request that runs the model on a slot hands over its content.

        Raises:
            PartyFailure
        """
        if "slot" in body and body["op"] not in _NOT_SHOWN:
            fds = self._content(body["slot"])
        token = secrets.token_hex(8)
        data = encode({**body, "id": token})
        self._floor.take(self.worker)
        return self._exchange(data, fds, token, timeout_s or self.call_timeout_s)[0]

    def call(self, slot: int, keep: int = 1, sample: Sequence[Part] = ()) -> int:
        """Run the model on a slot.

        The worker gets the slot's content when the clock has begun, and the clock ends when a sample of the
        answer is here: what it does before or afterwards gains it nothing.

        Args:
            slot: with its inputs.
            keep: so many earlier outputs stay alive meanwhile.
            sample: of the output, for `sampled`; the worker is not told of it before it has answered.

        Returns:
            Nanoseconds that count: by this process's clock, or by the device's where that stands beside it.

        Raises:
            PartyFailure
        """
        self.request({"op": "ready", "slot": slot, "keep": keep})
        token = secrets.token_hex(8)
        data = encode({"op": "call", "slot": slot, "id": token})
        fds = self._content(slot)

        reading = 0

        def take(reply: Mapping[str, Any]) -> None:
            nonlocal reading
            begin = _clock()
            self._locate(reply, keep)
            self._sample(sample)
            reading = _clock() - begin

        reply, took = self._exchange(data, fds, token, self.call_timeout_s, take)
        self.answered_ns = took - reading
        claimed = reply.get("ns")
        self.claimed_ns = claimed if isinstance(claimed, int) else 0
        counted = self._by_device(reply, took) if self._remote else took
        self.beside_ns = took - counted
        return counted

    @contextmanager
    def running_on(self) -> Iterator[None]:
        """Stop the worker at the end only: waking stopped threads takes longer than a short call."""
        pauses, self.pauses = self.pauses, False
        try:
            yield
        finally:
            self.pauses = pauses
            self.worker.stop()

    def _by_device(self, reply: Mapping[str, Any], took: int) -> int:
        """What a worker says of the device's clock, and no more than ours says: clocks run apart by a little,
        and who claims more gains nothing."""
        counted = reply.get("device_ns")
        if type(counted) is not int or counted <= 0:
            raise self._failed(EvaluationStatus.CHEATING, f"its device took {counted!r:.40} ns")
        return min(counted, took)

    def _content(self, slot: int) -> list[int]:
        assert self._contents is not None
        return [self._contents.descriptor(slot)]

    def _sample(self, sample: Sequence[Part]) -> None:
        self._taken, self._picked = ((), [], None), []
        if not sample:
            return
        if not self.readable:
            self._picked = self._pick(sample)
            return
        specs = self._located[-1]
        runs: list[tuple[int, int]] = []
        for leaf, first, count in sample:
            if leaf < len(specs) and specs[leaf].holds(first, count):
                runs += runs_of(specs[leaf], first, count)
        taken = self._reading(lambda: read_runs(self.worker.pid, runs)) if runs else None
        self._taken = (sample, specs, taken)

    def _pick(self, sample: Sequence[Part]) -> list[torch.Tensor]:
        """Ask for a sample of the last answer, which the worker hears of now."""
        token = secrets.token_hex(8)
        self.worker.channel.send_encoded(encode({"op": "pick", "parts": sample, "id": token}))
        picked = self.leaves(self._checked(self._await(self.call_timeout_s), token))
        found = [x.value if isinstance(x.value, torch.Tensor) else torch.empty(0) for x in picked]
        if len(found) != len(sample):
            raise self._failed(EvaluationStatus.CHEATING, "it described another sample than it was asked for")
        return found

    @property
    def sampled(self) -> list[torch.Tensor]:
        """What the last call's clock waited for."""
        sample, specs, taken = self._taken
        if taken is None:
            return self._picked
        found, offset = [], 0
        for leaf, first, count in sample:
            if leaf < len(specs) and specs[leaf].holds(first, count):
                dtype = specs[leaf].dtype
                found.append(torch.frombuffer(taken, dtype=dtype, count=count, offset=offset).clone())
                offset += count * dtype.itemsize
            else:
                found.append(torch.empty(0))
        return found

    def _locate(self, reply: Mapping[str, Any], keep: int) -> None:
        try:
            specs = parse_located(reply)
        except ProtocolViolation as error:
            raise self._failed(EvaluationStatus.CHEATING, f"it described {error}") from None
        dense = sum(aligned(s.layout.numel * DTYPES[s.layout.dtype].itemsize) for s in specs if s.layout)
        if self._outputs is None or dense > self._outputs.nbytes:
            raise PartyFailure(
                EvaluationStatus.INCORRECT_SHAPE, "the output is larger than the reference's", ""
            )
        self._located = [*self._located[max(0, len(self._located) - keep) :], specs]

    def _exchange(
        self,
        data: bytes,
        fds: Sequence[int],
        token: str,
        timeout_s: float,
        take: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> tuple[dict[str, Any], int]:
        """Send, wait, `take` what is asked for of a good answer; the clock runs all the time."""
        try:
            start = _clock()
            self.worker.resume()
            self.worker.channel.send_encoded(data, fds)
            message = self._await(timeout_s)
            if take is not None and message.body.get("id") == token and "error" not in message.body:
                take(message.body)
            took = _clock() - start
            if self.pauses:
                self.worker.stop()
        except ChannelTimeout:
            raise self._failed(EvaluationStatus.TIMEOUT, f"no answer within {timeout_s:g} s") from None
        except ProtocolViolation as error:
            raise self._failed(EvaluationStatus.CHEATING, f"it answered with {error}") from None
        except ChannelClosed:
            raise self._died() from None
        return self._checked(message, token), took

    def _checked(self, message: Message, token: str) -> dict[str, Any]:
        if message.body.get("id") != token:
            raise self._failed(
                EvaluationStatus.CHEATING, "it answered before it was asked: a forged message on the channel"
            )
        if "error" in message.body:
            raise self._refused(message.body["error"])
        return message.body

    def _await(self, timeout_s: float) -> Message:
        deadline = time.monotonic() + timeout_s
        # The same for every party, whether its memory is watched or not: this is on the clock.
        while not self.worker.channel.arrives(min(_WATCH_S, deadline - time.monotonic())):
            if time.monotonic() >= deadline:
                raise ChannelTimeout
            if self._memory_bytes is not None and self.worker.resident_bytes() > self._memory_bytes:
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
        if kind in ("EmulatorTooSlow", "Unsimulated"):  # it takes a GPU to say whether it is right
            return PartyFailure(EvaluationStatus.UNVERIFIED, message, log)
        if kind in ("SyntaxError", "IndentationError", "TabError"):
            return PartyFailure(EvaluationStatus.COMPILE_ERROR, text, log)
        return PartyFailure(EvaluationStatus.RUNTIME_ERROR, text, log)

    # -- outputs

    def configure(self, body: Mapping[str, Any], contents: Contents, outputs_bytes: int) -> None:
        """Give it a workload and fresh memory for its outputs."""
        self.release()
        self._located = []
        self._contents = contents
        self._outputs = Block.create(f"outputs-{self.name}", outputs_bytes)
        self._outputs.seal_size()
        self.request({"op": "workload", **body}, [self._outputs.fd])

    def fetch(self, slot: int, ago: int = 0) -> list[Leaf]:
        """All of an output, as tensors of our own.

        Args:
            slot: of the call.
            ago: how many calls ago; it must have been kept.

        Raises:
            PartyFailure
        """
        leaves = self._read(lambda specs: [read_leaf(self.worker.pid, s) for s in specs], ago)
        return self.leaves(self._put(slot, ago)) if leaves is None else leaves

    def fetch_parts(self, slot: int, parts: Sequence[Part], ago: int = 0) -> list[torch.Tensor]:
        """Some flat ranges of an output, of which the worker is not told; a part that is not there comes
        empty.

        Raises:
            PartyFailure
        """
        pieces = self._read(lambda specs: [self._piece(specs, part) for part in parts], ago)
        if pieces is not None:
            return pieces
        leaves = self.leaves(self._put(slot, ago))
        return [_flat(leaves, leaf)[first : first + count] for leaf, first, count in parts]

    def fetch_inputs(self, slot: int) -> list[Leaf]:
        """The inputs of a slot as the worker sees them."""
        return self.leaves(self._put(slot, "inputs"))

    def aliases(self, slot: int) -> bool:
        """Whether the last output shares memory with the inputs."""
        if not self.readable:
            return self._put(slot, 0).get("aliases") is True
        ranges = procfs.mapped(self.worker.pid, "agentforge-inputs")
        places = [s.address for s in self._located[-1] if s.layout is not None and s.layout.numel]
        return any(first <= place < last for place in places for first, last in ranges)

    def _put(self, slot: int, which: int | str) -> dict[str, Any]:
        return self.request({"op": "put", "which": which, "slot": slot})

    def _read(self, read: Callable[[list[LeafSpec]], list[_T]], ago: int) -> list[_T] | None:
        """Read from the worker's memory; None where this machine does not allow it."""
        if not self.readable:
            return None
        if self.pauses:
            self.worker.settle()
        return self._reading(lambda: read(self._located[-1 - ago]))

    def _reading(self, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except NotAllowed:
            self.readable = False
            return None
        except Unreadable:
            if self.worker.wait(_LAST_WORD_S) is not None:
                raise self._died() from None
            raise self._failed(
                EvaluationStatus.CHEATING, "its output does not lie where it says that it lies"
            ) from None

    def _piece(self, specs: list[LeafSpec], part: Part) -> torch.Tensor:
        leaf, first, count = part
        layout = specs[leaf].layout if leaf < len(specs) else None
        if layout is None or first + count > layout.numel:
            return torch.empty(0)
        if layout.strides != contiguous_strides(layout.shape):
            whole = read_leaf(self.worker.pid, specs[leaf]).value
            return torch.as_tensor(whole).reshape(-1)[first : first + count]
        dtype = DTYPES[layout.dtype]
        return read_flat(self.worker.pid, specs[leaf].address + first * dtype.itemsize, count, dtype)

    def leaves(self, reply: Mapping[str, Any]) -> list[Leaf]:
        """What an answer describes, copied out of the memory that the worker can write to."""
        assert self._outputs is not None
        specs = self._described(reply)
        return [Leaf(s.path, self._outputs.read(s.layout) if s.layout else s.value) for s in specs]

    def _described(self, reply: Mapping[str, Any]) -> list[LeafSpec]:
        assert self._outputs is not None
        try:
            return parse_leaves(reply, self._outputs.nbytes)
        except ProtocolViolation as error:
            raise self._failed(EvaluationStatus.CHEATING, f"it described {error}") from None

    def drawn(self, layouts: Sequence[Layout]) -> list[torch.Tensor]:
        """What a trusted worker put at known places of its output memory."""
        assert self._outputs is not None
        return [self._outputs.read(layout) for layout in layouts]

    def release(self) -> None:
        if self._outputs is not None:
            self._outputs.close()
            self._outputs = None

    def close(self) -> None:
        """Kill the worker, give the memory back."""
        self.worker.kill()
        self.release()


def _flat(leaves: Sequence[Leaf], index: int) -> torch.Tensor:
    value = leaves[index].value if index < len(leaves) else None
    return value.reshape(-1) if isinstance(value, torch.Tensor) else torch.empty(0)


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def trusted(failure: PartyFailure, what: str) -> HarnessError:
    """The error to raise where a trusted party failed."""
    return HarnessError(f"{what}: {failure.reason}")
