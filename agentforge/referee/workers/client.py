"""RPC client of one worker that runs a model."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch

from agentforge.isolation import procfs
from agentforge.schema import EvaluationStatus

from ..timing.exclusive_run import ExclusiveRun
from .device_backend import CPU, DeviceBackend
from .failures import TOO_LARGE, WorkerFailure, failure_of_death, failure_of_reply
from .memory.output_memory import OutputMemory, Sharing
from .memory.process_memory import (
    Elements,
    NotAllowed,
    Unreadable,
    allows,
    cut_parts,
    elements_of,
    read_elements,
    read_leaf,
    read_part,
    read_runs,
    write_runs,
)
from .memory.shared_memory import DTYPES, Block, Contents, InputMemory, Layout, aligned
from .protocol import ChannelClosed, ChannelTimeout, Message, ProtocolViolation, encode
from .pytree import Leaf, LeafSpec, Part, layout_at, parse_leaves, parse_located
from .worker import Worker

_T = TypeVar("_T")
_clock = time.perf_counter_ns
_LAST_WORD_S, _WATCH_S = 0.2, 0.2
"""Seconds to wait for the end of a process whose memory is gone, and between checks of memory use."""
_MISPLACED, _READ_ONLY = "its output is not at the address that it names", "its output cannot be written to"
_FORBIDDEN = "it forbids the referee to read its memory, which it could read before the solution ran"
_FORGED = "it answered before it was asked: a forged message on the channel"
_INPUTS = "agentforge-inputs"  # in the names of their files
_NOT_SHOWN = "put"
"""The request with a slot that needs the slot as the last call left it."""


class WorkerClient:
    """Sends requests to one worker and judges how they end. Not thread-safe.

    Args:
        call_timeout_s: for each request.
        memory_bytes: resident memory beyond which worker and children are killed; None for trusted ones.
        emulated: the solution may run in an emulator, which may say that it cannot run something.
    """

    def __init__(
        self,
        name: str,
        worker: Worker,
        exclusive: ExclusiveRun,
        *,
        call_timeout_s: float,
        backend: DeviceBackend = CPU,
        memory_bytes: int | None = None,
        emulated: bool = False,
    ) -> None:
        self.name = name
        self.worker = worker
        self.exclusive = exclusive
        self.call_timeout_s = call_timeout_s
        self._memory_bytes = memory_bytes
        self._emulated = emulated
        self._inputs: InputMemory | None = None
        self._outputs: Block | None = None
        self.memory = OutputMemory(Sharing())
        """Places of its last outputs."""
        self._remote = backend.remote
        self._device_clock = backend.remote and backend.device_clock
        self.readable = not backend.remote and allows(worker.pid)
        """Its memory can be read while it is stopped. If not, it must copy its outputs to shared memory."""
        self.pauses = memory_bytes is not None
        """Stop the worker as soon as it has answered; a trusted one runs on until another one is asked."""
        self._taken: tuple[Sequence[Part], list[LeafSpec], bytearray | None] = ((), [], None)
        self._picked: list[torch.Tensor] = []
        self.overhead_ns = 0
        """Overhead of the last call in ns: wall time minus timed part."""

    # -- requests

    def request(
        self, body: Mapping[str, Any], fds: Sequence[int] = (), timeout_s: float | None = None
    ) -> dict[str, Any]:
        """One request and its answer. Before a request that runs the model on a slot, it gets its content.

        Raises:
            WorkerFailure
        """
        if "slot" in body and body["op"] != _NOT_SHOWN and self._inputs is not None:
            self._inputs.write(body["slot"])
        token = secrets.token_hex(8)
        data = encode({**body, "id": token})
        self.exclusive.take(self.worker)
        return self._exchange(data, fds, token, timeout_s or self.call_timeout_s)[0]

    def call(self, slot: int, keep: int = 1, sample: Sequence[Part] = (), views: int | None = None) -> int:
        """Run the model on a slot.

        The clock ends when a sample of the answer is here, and then the worker is stopped again: none of its
        threads works before or afterwards.

        Args:
            keep: number of earlier outputs that stay alive during the call, or views of them.
            sample: of the output, for `sampled`, sorted by leaf; the worker learns of it after its answer.
            views: 1 to keep views alone of this output; None leaves it to chance.

        Returns:
            Timed nanoseconds: by this process's clock, or by the device's if it has one.

        Raises:
            WorkerFailure
        """
        token = secrets.token_hex(8)
        self.exclusive.take(self.worker)
        self._settle()
        self._overwrite(keep)
        assert self._inputs is not None
        self._inputs.write(slot)
        views = secrets.randbelow(2) if views is None else views
        data = encode({"op": "call", "slot": slot, "keep": keep, "views": views, "id": token})
        elements = elements_of(sample)

        def take(reply: Mapping[str, Any]) -> None:
            self._locate(reply)
            self._sample(sample, elements)

        reply, took = self._exchange(data, (), token, self.call_timeout_s, take)
        self._settle()
        counted = self._by_device(reply, took) if self._device_clock else took
        self.overhead_ns = took - counted
        complaint = self.memory.complaint(self._runs)  # of all, so that none has colder caches next
        if complaint and self._memory_bytes is not None:
            raise self._failed(EvaluationStatus.CHEATING, complaint)
        return counted

    def rest(self) -> None:
        """Let it drop its outputs and the memory that it has free: before timing, all workers are alike.

        Raises:
            WorkerFailure
        """
        self._overwrite(keep=0)
        self.request({"op": "rest"})

    def _settle(self) -> None:
        if not self.worker.settle():
            raise self._failed(EvaluationStatus.CHEATING, "it works on while it is stopped")

    def _overwrite(self, keep: int) -> None:
        """Write to the outputs that the next call drops, as their caller may."""
        runs, content = self.memory.drop(keep)
        if runs and self.readable:
            self._reading(lambda: write_runs(self.worker.pid, runs, content), _READ_ONLY)

    def _runs(self, runs: Sequence[tuple[int, int]]) -> bytearray | None:
        """Bytes of the worker's memory; None if there are none, or this machine forbids reading them."""
        if not runs or not self.readable:
            return None
        return self._reading(lambda: read_runs(self.worker.pid, runs))

    def _by_device(self, reply: Mapping[str, Any], took: int) -> int:
        """Time by the device's clock as the worker claims it, at most this process's own time: clocks differ
        a little, and a larger claim gains nothing."""
        counted = reply.get("device_ns")
        if type(counted) is not int or counted <= 0:
            raise self._failed(EvaluationStatus.CHEATING, f"its device took {counted!r:.40} ns")
        return min(counted, took)

    def _sample(self, sample: Sequence[Part], elements: Elements) -> None:
        self._taken, self._picked = ((), [], None), []
        if not sample:
            return
        if not self.readable:
            self._picked = self._pick(sample)
            return
        specs = self.memory.living[-1]
        taken = self._reading(lambda: read_elements(self.worker.pid, specs, elements))
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
        """The sample that the last call's clock waited for."""
        sample, specs, taken = self._taken
        return self._picked if taken is None else cut_parts(specs, sample, taken)

    def _locate(self, reply: Mapping[str, Any]) -> None:
        try:
            specs = parse_located(reply)
        except ProtocolViolation as error:
            raise self._failed(EvaluationStatus.CHEATING, f"it described {error}") from None
        self.memory.living.append(specs)
        dense = sum(aligned(s.layout.numel * DTYPES[s.layout.dtype].itemsize) for s in specs if s.layout)
        if self._outputs is None or dense > self._outputs.nbytes:
            raise self._own(WorkerFailure(EvaluationStatus.INCORRECT_SHAPE, TOO_LARGE))

    def _exchange(
        self,
        data: bytes,
        fds: Sequence[int],
        token: str,
        timeout_s: float,
        take: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> tuple[dict[str, Any], int]:
        """Send, wait, and `take` from a good answer. The clock runs from when the worker runs until then."""
        try:
            if take is None:
                self.worker.resume()
            # A call's message is small and waits in the socket while the worker is stopped.
            self.worker.channel.send_encoded(data, fds)
            start = _clock()
            self.worker.resume()
            message = self._await(timeout_s)
            if take is not None and message.body.get("id") == token and "error" not in message.body:
                take(message.body)
            took = _clock() - start
            if self.pauses or take is not None:
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
            raise self._failed(EvaluationStatus.CHEATING, _FORGED)
        if "error" in message.body:
            failure = failure_of_reply(message.body["error"], emulated=self._emulated)
            raise self._ended(failure) if failure.status is EvaluationStatus.CRASHED else self._own(failure)
        return message.body

    def _await(self, timeout_s: float) -> Message:
        deadline = time.monotonic() + timeout_s
        # The same for every worker, whether its memory is watched or not: this is on the clock.
        while not self.worker.channel.arrives(min(_WATCH_S, deadline - time.monotonic())):
            if time.monotonic() >= deadline:
                raise ChannelTimeout
            if self._memory_bytes is not None and self.worker.resident_bytes() > self._memory_bytes:
                reason = f"it took more than {self._memory_bytes >> 20} MiB of memory"
                raise self._failed(EvaluationStatus.OUT_OF_MEMORY, reason)
        return self.worker.channel.receive(max(0.001, deadline - time.monotonic()))

    # -- failures

    def _failed(self, status: EvaluationStatus, reason: str) -> WorkerFailure:
        late = status is EvaluationStatus.TIMEOUT
        starved = late and procfs.starved([self.worker.pid, *self.worker.others()])
        return self._ended(WorkerFailure(status, reason, self.worker.log_tail(), starved=starved))

    def _died(self) -> WorkerFailure:
        return self._ended(failure_of_death(self.worker.wait(5.0), self.worker.log_tail()))

    def _ended(self, failure: WorkerFailure) -> WorkerFailure:
        self.worker.kill()
        return self._own(failure)

    def _own(self, failure: WorkerFailure) -> WorkerFailure:
        """The failure of this worker; if it is a trusted one it says so, and no candidate is blamed."""
        failure.worker = self.name if self._memory_bytes is None else ""
        return failure

    # -- outputs

    def configure(self, body: Mapping[str, Any], contents: Contents, outputs_bytes: int) -> None:
        """Give it a workload and fresh memory for its outputs."""
        self.release()
        self.memory = OutputMemory(Sharing.from_json(body["sharing"]))
        self._inputs = InputMemory(contents)
        self._outputs = Block.create(f"outputs-{self.name}", outputs_bytes)
        self._outputs.seal_size()
        self.request({"op": "workload", **body}, [self._inputs.fd, self._outputs.fd])

    def fetch(self, slot: int, ago: int = 0) -> list[Leaf]:
        """A whole output, as tensors of this process.

        Args:
            ago: how many calls ago; it must have been kept.

        Raises:
            WorkerFailure
        """
        leaves = self._read(lambda specs: [read_leaf(self.worker.pid, s) for s in specs], ago)
        return self.leaves(self._put(slot, ago)) if leaves is None else leaves

    def fetch_parts(self, slot: int, parts: Sequence[Part], ago: int = 0) -> list[torch.Tensor]:
        """Some flat ranges of an output, which the worker does not learn; a part that does not exist comes
        empty.

        Raises:
            WorkerFailure
        """
        pieces = self._read(lambda specs: [read_part(self.worker.pid, specs, part) for part in parts], ago)
        if pieces is not None:
            return pieces
        assert self._outputs is not None
        specs = self._described(self._put(slot, ago))
        return [
            self._outputs.read_range(layout_at(specs, leaf), first, count) for leaf, first, count in parts
        ]

    def fetch_inputs(self, slot: int) -> list[Leaf]:
        """The inputs of a slot as the last call left them."""
        if self._remote:
            return self.leaves(self._put(slot, "inputs"))
        assert self._inputs is not None
        return [Leaf(str(n), tensor) for n, tensor in enumerate(self._inputs.read(slot))]

    def wrote_to_inputs(self, slot: int) -> bool:
        """Whether it changed the memory that a slot's inputs lie in."""
        return self._inputs is not None and self._inputs.changed(slot)

    def aliases(self, slot: int) -> frozenset[int]:
        """Leaves of the last output that share memory with the inputs."""
        if not self.readable:
            claim = self._put(slot, 0).get("aliases")
            return frozenset(n for n in claim if type(n) is int) if isinstance(claim, list) else frozenset()
        return self.memory.lies_in(procfs.mapped(self.worker.pid, _INPUTS))

    def of_files(self) -> frozenset[int]:
        """Leaves of the last output in pages of files, as those of inputs are; none if that is not known."""
        return self.memory.lies_in(procfs.backed_by_files(self.worker.pid)) if self.readable else frozenset()

    def shares_pages(self) -> frozenset[int]:
        """Leaves of the last output in pages that other addresses show too, or in those of inputs."""
        return self.memory.lies_in(procfs.shown_twice(self.worker.pid, _INPUTS))

    def _put(self, slot: int, which: int | str) -> dict[str, Any]:
        return self.request({"op": "put", "which": which, "slot": slot})

    def _read(self, read: Callable[[list[LeafSpec]], list[_T]], ago: int) -> list[_T] | None:
        """Read from the worker's memory; None if this machine forbids it."""
        if not self.readable:
            return None
        self._settle()
        return self._reading(lambda: read(self.memory.living[-1 - ago]))

    def _reading(self, read: Callable[[], _T], otherwise: str = _MISPLACED) -> _T | None:
        try:
            return read()
        except NotAllowed:
            if self._memory_bytes is not None:
                raise self._failed(EvaluationStatus.CHEATING, _FORBIDDEN) from None
            self.readable = False
            return None
        except Unreadable:
            if self.worker.wait(_LAST_WORD_S) is not None:
                raise self._died() from None
            raise self._failed(EvaluationStatus.CHEATING, otherwise) from None

    def leaves(self, reply: Mapping[str, Any]) -> list[Leaf]:
        """The outputs that a reply describes, copied out of the memory that the worker can write to."""
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
        """Tensors that a trusted worker copied to known places of its output memory."""
        assert self._outputs is not None
        return [self._outputs.read(layout) for layout in layouts]

    def release(self) -> None:
        for block in (self._inputs, self._outputs):
            if block is not None:
                block.close()
        self._inputs = self._outputs = None

    def close(self) -> None:
        """Kill the worker, give the memory back."""
        self.worker.kill()
        self.release()
