"""The trusted side of an evaluation: baseline workers with their inputs and bounds for one definition."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, TypeVar

import torch

from agentforge.config import RefereeSettings
from agentforge.schema import Definition, Level, TargetError, Workload, baseline_name

from ..comparison.exactness import Exactness
from ..comparison.tolerance import Bound, all_finite, measure, scale_of, widest
from ..inputs.acceptance import orders_that_count, try_mixtures
from ..inputs.inputs import Arguments, Inputs, arguments_of, drawn_numbers
from ..workers.client import WorkerClient
from ..workers.device_backend import CPU, DeviceBackend
from ..workers.failures import WorkerFailure
from ..workers.memory.shared_memory import Block
from ..workers.pytree import Leaf, same_bytes
from ..workers.runner import CHEAP
from .ahead import TIME_NOTHING, CompilingAhead, Spawn, Starting, answer
from .latitude import with_latitude
from .nearby import NotDefined, bounds_nearby
from .prepared import OF_INPUTS, OutputForm, PreparedWorkload, broken_reference
from .sealed_weights import Weights
from .task_report import TaskReport

_T = TypeVar("_T")


class Baselines:
    """Baseline workers of one definition: eager (also the reference), a control like it, compiled.

    Args:
        origin: baselines of the same workloads whose weights, inputs and bounds these share; closed later.
    """

    def __init__(
        self,
        definition: Definition,
        workloads: Sequence[Workload],
        settings: RefereeSettings,
        spawn: Spawn,
        *,
        backend: DeviceBackend = CPU,
        origin: Baselines | None = None,
    ) -> None:
        self._origin = origin
        self.definition = definition
        self.settings = settings
        self.notes: list[str] = []
        self.task: TaskReport | None = None
        """What the task check found; None until it ran."""
        self._spawn = spawn
        self._backend = backend
        self.clients: dict[str, WorkerClient] = {}
        self.prepared: list[PreparedWorkload] = []
        self._current: PreparedWorkload | None = None
        self.workloads = len(workloads)
        self.lost: set[str] = origin.lost if origin else set()
        """Compiled baselines that could not be built, or not in time."""
        self.on_lost: Callable[[str, WorkerFailure], object] = lambda *_: None  # each that failed by itself
        self._to_compile, lacking = backend.compiled(settings, whole_model=definition.whole_model)
        if lacking and origin is None:
            self.notes.append(f"no baseline on {backend.device}: {', '.join(lacking)}")
        self._ahead: CompilingAhead | None = None
        self._starting = Starting()
        self.compiled_at: float = origin.compiled_at if origin else 0.0
        """By `time.time()`: all files in the compiler's cache that are older are whole."""
        self._seed = origin.weights.seed if origin else secrets.randbits(31)
        try:
            self._start_beside("eager")
            self._start_beside("control")
            if origin is not None:
                self.weights: Weights = origin.weights
                self.prepared = origin.prepared
                self._compile_beside([name for name in self._to_compile if self._differs(name)])
            self.eager, constructed = self._started("eager")
            if origin is None:
                self.weights = self._weights(constructed)
                for workload in workloads:
                    self.prepared.append(self._prepared(workload))
            self._to_compile = [name for name in self._to_compile if self._differs(name)]
            self.control, _ = self._started("control")
            self.enter(self.prepared[0])
        except BaseException as error:
            self.close()
            if isinstance(error, WorkerFailure) and origin is None:  # otherwise the reference ran before
                raise TargetError(broken_reference(definition, error)) from error
            raise

    # -- construction

    def _start_beside(self, name: str, ahead: Any = None) -> None:
        """Begin a worker beside others; with `ahead`, the first workload's encoded arguments, it compiles."""
        self._starting.begin(self._spawn(name, False), lambda client: self._construct(client, ahead))

    def _started(self, name: str, until: float = inf) -> tuple[WorkerClient, dict[str, Any]]:
        """A worker that was begun, when it is ready, and its answer."""
        self.clients[name], future = self._starting.take(name)
        return self.clients[name], answer(self.clients[name], future, until)

    def _compile_beside(self, names: Sequence[str]) -> None:
        """Begin compiled baselines that can be begun side by side."""
        arguments = self.prepared[0].inputs.arguments.encoded
        for name in names:
            beside = not self._backend.remote and self._backend.baselines[name] in TIME_NOTHING
            if beside and name not in self._starting:
                self._start_beside(name, arguments)

    def _construct(self, client: WorkerClient, ahead: Any = None) -> dict[str, Any]:
        body = {
            "op": "reference", "definition": self.definition.model_dump(mode="json"), "seed": self._seed,
            "threads": self.settings.threads, "device": self._backend.device,
            "events": self._backend.events, "compile": self._backend.baselines.get(client.name, ""),
            "ahead": ahead, "workload": self.prepared[0].workload.key if ahead else "",
        }  # fmt: skip
        s = self.settings
        return client.request(body, timeout_s=s.compile_timeout_s if ahead else max(120.0, s.call_timeout_s))

    def _weights(self, constructed: dict[str, Any]) -> Weights:
        block = Block.create("weights", constructed["nbytes"])
        self.eager.request({"op": "export"}, [block.fd])
        block.seal_writes()
        init, state, buffers, trained = (constructed[k] for k in ("init", "state", "buffers", "trained"))
        return Weights(block, init, state, buffers, trained, self._seed)

    def _differs(self, name: str) -> bool:
        """Whether a compiled baseline can be built, and is another one than `compile`."""
        constant = bool(self.weights.state) and not self.definition.differentiable
        return name not in self.lost and (constant or not self._backend.baselines[name].endswith("freezing"))

    def missing(self, level: Level) -> list[str]:
        """Compiled baselines of a level that have not been started; `quick` waits for cheap ones only."""
        modes, cheap = self._backend.baselines, CHEAP if self.settings.quick_compile else ()
        left = [name for name in self._to_compile if name not in self.lost]
        return left if level is Level.FULL else [name for name in left if modes[name] in cheap]

    def compile_ahead(self, level: Level) -> None:
        """Begin to fill the compiler's cache for the level's compiled baselines, in the background. A wrong
        candidate costs that processor time, and no waiting."""
        names = self.missing(level)
        if self._ahead is None and names and not self._backend.remote:
            arguments = self.prepared[0].inputs.arguments.encoded
            self._ahead = CompilingAhead(
                [partial(self._spawn, name, True) for name in names],
                lambda client: self._construct(client, arguments),
            )

    def start_compiled(self, level: Level, until: float = inf) -> None:
        """Start the level's compiled baselines; none that needs longer than `until` (`time.monotonic()`)."""
        if self._ahead is not None:
            self._ahead.wait(until)
            self._ahead = None
        if time.monotonic() < until:
            self._compile_beside(self.missing(level))
        for name in self.missing(level):
            if time.monotonic() < until or name in self._starting:
                self._to_compile.remove(name)
                self._start_compiled(name, until)
        if time.monotonic() < until:  # otherwise a worker may have been ended while it wrote
            self.compiled_at = time.time()
        if len(self.prepared) > 1 and self._current is not None:
            current, self._current = self._current, None
            self.enter(current)

    def _start_compiled(self, name: str, until: float) -> None:
        try:
            if name not in self._starting:
                self._start_beside(name)
            client, _ = self._started(name, until)
            usual = client.call_timeout_s
            client.call_timeout_s = min(self.settings.compile_timeout_s, max(0.1, until - time.monotonic()))
            for prepared in self.prepared:
                client.configure(prepared.body(), prepared.inputs, prepared.outputs_bytes)
                self.eager.worker.stop()
                for slot in (0, 1):
                    client.call(slot)
            client.call_timeout_s = usual
        except WorkerFailure as failure:
            self.clients.pop(name).close()
            self.leave_out(name, failure.reason.splitlines()[0][:200])
            if time.monotonic() < until:  # otherwise it was ended
                self.on_lost(name, failure)

    def leave_out(self, name: str, why: str) -> None:
        """Measure without a compiled baseline, which is noted."""
        self.notes.append(f"{baseline_name(name)} is left out: it cannot run this ({why})")
        self.lost.add(name)

    def _prepared(self, workload: Workload) -> PreparedWorkload:
        if workload.source == "spec":
            arguments, drawing, fresh, numbers = arguments_of(workload), None, False, False
        else:
            arguments, fresh = self._described(workload.key)
            drawing = partial(self._draw, workload.key)
            numbers = drawn_numbers(arguments, lambda: self._described(workload.key)[0])
        inputs = Inputs(workload, arguments, drawing)
        inputs.anew = fresh
        prepared = PreparedWorkload(workload, inputs, inputs.slot_bytes, drawn_numbers=numbers)
        self.enter_eager(prepared)
        inputs.give(0, inputs.drawn())
        self._make_room(prepared)
        self._find_mutation(prepared)
        ask = partial(self.expect_or_none, prepared)
        try_mixtures(inputs, ask)
        for slot in range(inputs.slots):
            inputs.fill(slot)
        self._derive_bounds(prepared)
        inputs.order_counts = orders_that_count(inputs, prepared.bounds, ask)
        return prepared

    def expect_or_none(self, prepared: PreparedWorkload, slot: int) -> list[Leaf] | None:
        """The reference's output for a slot; None if it raises."""
        try:
            return self.expect(prepared, slot)
        except WorkerFailure:
            if not self.eager.worker.running:
                raise
            return None

    def _described(self, key: str) -> tuple[Arguments, bool]:
        """Arguments of a new draw, and whether the reference asks for one for each call."""
        reply = self.eager.request({"op": "describe", "seed": secrets.randbits(60), "workload": key})
        return Arguments(reply["arguments"], reply["slot_bytes"]), reply["fresh"]

    def _make_room(self, prepared: PreparedWorkload) -> None:
        """Room for float64 outputs; pages that are not touched cost nothing."""
        shape = self.eager.request({"op": "shape", "slot": 0})
        if shape["signs"]:
            raise TargetError(
                f"{self.definition.name}: the answer depends on the signs of the vectors of qr, svd, eigh or "
                "eig. torch leaves them open, so nothing tells a right answer from a wrong one; return "
                "something that does not depend on them"
            )
        for name in ("open_order", "rounds", "state", "lowers", *OF_INPUTS):
            setattr(prepared, name, shape[name])
        prepared.outputs_bytes = max(shape["nbytes64"], prepared.inputs.slot_bytes) + (1 << 16)
        if self.definition.differentiable:
            prepared.outputs_bytes += 4 * (prepared.inputs.slot_bytes + self.weights.block.nbytes)
        self.eager.configure(prepared.body(), prepared.inputs, prepared.outputs_bytes)

    def _draw(self, key: str, seed: int) -> list[torch.Tensor]:
        reply = self.eager.request({"op": "draw", "seed": seed, "workload": key})
        if reply["changed"]:
            raise TargetError(
                f"{self.definition.name}: get_inputs() gives other shapes on each call; "
                "give one workload for each shape instead"
            )
        assert self._current is not None
        return self.eager.drawn(self._current.inputs.layouts)

    def _find_mutation(self, prepared: PreparedWorkload) -> None:
        before = prepared.inputs.copies(0)
        self.eager.call(0)
        seen = self.eager.fetch_inputs(0)
        pairs = zip(before, seen, strict=True)
        prepared.written = [n for n, (a, b) in enumerate(pairs) if not same_bytes(a, b.value)]
        if prepared.written:
            self.notes.append("the reference writes to its inputs; that is a part of its answer")
            self.eager.configure(prepared.body(), prepared.inputs, prepared.outputs_bytes)
            self._make_room(prepared)

    def _derive_bounds(self, prepared: PreparedWorkload) -> None:
        draws = [self._bounds_of_draw(prepared, slot) for slot in (0, 1)]
        prepared.bounds = [widest(list(leaf)) for leaf in zip(*draws, strict=True)]

    def _bounds_of_draw(self, prepared: PreparedWorkload, slot: int) -> list[Bound]:
        first = self.expect(prepared, slot)
        prepared.scales = [scale_of(leaf.value) for leaf in first]
        self.eager.call(slot)
        second = self.eager.fetch(slot)
        bounds = self.error_bounds(prepared, slot)
        for a, b, bound in zip(first, second, bounds, strict=True):
            if isinstance(a.value, torch.Tensor) and not measure(b.value, a.value, bound).within(bound):
                raise TargetError(
                    f"{self.definition.name}: two calls on the same inputs differ; seed it, put dropout in "
                    "eval mode, or make a buffer that each call changes an input and an output"
                )
        return bounds

    # -- use

    def enter_eager(self, prepared: PreparedWorkload) -> None:
        """Give the eager worker alone a workload; call `disturbed` before the next `enter`."""
        self._current = prepared
        self.eager.configure(prepared.body(), prepared.inputs, prepared.outputs_bytes)

    def disturbed(self) -> None:
        """Parties may have been given something else: the next `enter` gives them their workload again."""
        self._current = None

    def enter(self, prepared: PreparedWorkload) -> None:
        """Give every trusted worker the workload."""
        if self._current is prepared and all(p._outputs is not None for p in self.clients.values()):
            return
        self._current = prepared
        if self._origin is not None:
            self._origin.enter_eager(prepared)  # it draws the inputs
        for client in self.clients.values():
            client.configure(prepared.body(), prepared.inputs, prepared.outputs_bytes)
            client.worker.stop()

    def expect(self, prepared: PreparedWorkload, slot: int) -> list[Leaf]:
        """The reference's output for a slot; each output that is not finite has its `alternative`."""
        self.eager.call(slot)
        leaves = self.eager.fetch(slot)
        prepared.outputs = [OutputForm.of(leaf) for leaf in leaves]
        prepared.sharing = prepared.sharing.joined(self.eager.memory.sharing())
        leaves = [
            with_latitude(x, form.integer, self.eager, prepared, (slot, n))
            for n, (x, form) in enumerate(zip(leaves, prepared.outputs, strict=True))
        ]
        if all(all_finite(x.value) for x in leaves):
            return leaves
        others = self._in_float64(prepared, lambda: self._leaves("alternatives", slot))
        if others is None:
            return leaves
        return [replace(x, alternative=y.value) for x, y in zip(leaves, others, strict=True)]

    def exact(self, prepared: PreparedWorkload, slot: int) -> list[Leaf] | None:
        """The reference in float64 for a slot; None if that cannot be computed."""
        return self._in_float64(prepared, lambda: self._leaves("exact", slot))

    def _leaves(self, op: str, slot: int) -> list[Leaf]:
        return self.eager.leaves(self.eager.request({"op": op, "slot": slot}))

    def _in_float64(self, prepared: PreparedWorkload, ask: Callable[[], _T]) -> _T | None:
        """The result of `ask`; None if the reference cannot be computed in float64, which is noted once."""
        if not prepared.exact_ok:
            return None
        try:
            return ask()
        except WorkerFailure as failure:
            if not self.eager.worker.running:
                raise
            prepared.exact_ok = False
            self.notes.append(f"no float64 reference ({failure.reason.splitlines()[0][:120]}); "
                              "tolerance from the conditioning of the reference")  # fmt: skip
            return None

    def exactness(self, prepared: PreparedWorkload, slot: int) -> list[Exactness] | None:
        """Error of the reference's last output, for this slot, against float64; None if that cannot be
        computed."""
        return self._in_float64(prepared, lambda: self.held_against(prepared, slot, "float64"))

    def conditioning(self, prepared: PreparedWorkload, slot: int) -> list[Exactness]:
        """How far the reference's last output, for this slot, moves with the last bits of its inputs."""
        return self.held_against(prepared, slot, "moved")

    def held_against(
        self, prepared: PreparedWorkload, slot: int, against: str, units: float = 0.0
    ) -> list[Exactness]:
        """Error of the reference against `float64`, `moved` or `nearby`: see `BaselineServer._exactness`."""
        policy = self.definition.tolerance.model_dump(mode="json")
        body = {"op": "exactness", "slot": slot, "against": against, "policy": policy, "units": units}
        reply = self.eager.request({**body, "reduction": prepared.reduction})
        return [Exactness(**{**x, "bound": Bound(**x["bound"])}) for x in reply["exactness"]]

    def error_bounds(self, prepared: PreparedWorkload, slot: int) -> list[Bound]:
        """Bounds from the reference's own error in its last output, which was for this slot."""
        return [x.bound for x in self.exactness(prepared, slot) or self.conditioning(prepared, slot)]

    def bounds_for(self, prepared: PreparedWorkload, slot: int) -> list[Bound]:
        """As `error_bounds`, and small outputs' bounds at least by the reference's error nearby."""
        bounds = self.error_bounds(prepared, slot)
        with suppress(NotDefined):
            return bounds_nearby(self, prepared, slot, bounds, every=False)
        return bounds

    def stop(self) -> None:
        """Stop every trusted worker until it is called again."""
        for client in self.clients.values():
            client.worker.stop()

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
        self.clients |= self._starting.rest()
        for client in self.clients.values():
            client.worker.end()  # all at once: then each has ended when it is waited for
        self._starting.close()
        for client in self.clients.values():
            client.close()
        if self._origin is not None:
            return
        for prepared in self.prepared:
            prepared.inputs.close()
        if self._current is not None:
            self._current.inputs.close()
        if hasattr(self, "weights"):
            self.weights.close()
