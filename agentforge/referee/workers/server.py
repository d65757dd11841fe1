"""The loop of a worker: build a model, run it on shared inputs, hand out bytes.

Candidates and baselines run the same code, at the same cost. In a candidate's process nothing here is
trusted.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from agentforge.languages import PRELUDE
from agentforge.problems.generators import seed_weights

from ..baselines.weights import built, dense_state
from ..candidates.jit_cache import link_missing
from ..candidates.launches import count_replays
from ..candidates.lookups import Lookups
from . import arguments as values
from .environment import level_allocator
from .failures import TOO_LARGE, UnusableOutput, describe_error
from .headers import keep_headers_in
from .memory.shared_memory import Block, Layout, Window, aligned, in_pages
from .protocol import Channel, ChannelClosed
from .pytree import Leaf, describe, flatten, locate, pick, total_bytes
from .runner import HostRunner, Runner, Way, gradients, runner_for

Slot = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""
Handler = Callable[[dict[str, Any], tuple[int, ...]], dict[str, Any]]


class Server:
    """Answers the referee's messages until it hangs up."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._model: Callable[..., Any] | None = None
        self._class: Callable[..., Any] | None = None
        """The solution's class, or function."""
        self._runner: Runner = HostRunner()
        self._slots: list[Slot] = []
        self._brought: dict[int, Slot] = {}
        """Arguments of slots as the model last read them."""
        self._copy_inputs = False
        self._blocked: list[int] = []
        self._written: list[int] = []
        """Tensors among the inputs that the reference writes to."""
        self._outputs: Block | None = None
        self._lookups: Lookups | None = None
        self._kept: list[Any] = []
        """Outputs that the referee may still look at, the newest last."""
        self._handlers: dict[str, Handler] = {
            "load": self._load,
            "workload": self._workload,
            "rest": self._rest,
            "call": self._call,
            "pick": self._pick,
            "put": self._put,
            "attest": self._attest,
            "gradients": self._gradients,
            "state": self._state,
            "another": self._another,
            "launches": self._launches,
        }

    def run(self) -> None:
        """Serve. An exception of a model becomes an error reply; anything worse ends the process."""
        while True:
            try:
                message = self._channel.receive()
            except ChannelClosed:
                return
            self._channel.send(self.answer(message.body, message.fds))

    def answer(self, body: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """The reply to one request, which gives away its descriptors."""
        try:
            reply = self._handlers[body["op"]](body, fds)
        except BaseException as error:
            reply = {"error": describe_error(error, device_lost=not self._runner.usable())}
        reply["id"] = body.get("id")
        return reply

    # -- construction

    def _load(self, body: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """Import the entry file and construct the model; `fds` has the weights."""
        torch.set_num_threads(body["threads"])
        self._runner = runner_for(body["device"], events=body["events"])
        if body["device"].startswith("cuda"):
            count_replays(torch.cuda.CUDAGraph)
        weights = Block(fds[0], os.fstat(fds[0]).st_size, writable=False)
        if body["compiled"]:
            shutil.copytree(body["compiled"], os.environ["TORCHINDUCTOR_CACHE_DIR"], dirs_exist_ok=True)
        if "ready" in body:
            cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
            link_missing(Path(body["ready"]), cache, body["ready_before"])
            keep_headers_in(cache.parent / "headers")
        sys.path.insert(0, body["folder"])
        if "lookups" in body:
            self._lookups = Lookups(Path(body["lookups"]))
        if (Path(body["folder"]) / PRELUDE).is_file():
            importlib.import_module(PRELUDE.removesuffix(".py"))
        module = import_entry(Path(body["folder"]), body["module"])
        model_class = getattr(module, body["class"], None)
        if model_class is None:
            raise AttributeError(f"the solution has no class {body['class']}")
        self._class = model_class
        model, report = self._constructed(body, weights)
        self._take(model)
        weights.close()
        return report

    def _constructed(self, body: dict[str, Any], weights: Block) -> tuple[Any, dict[str, Any]]:
        """A model on its device, and what `load_weights` says of it."""
        init, model_class = values.decode(body["init"], weights), self._class
        assert model_class is not None

        def build() -> Any:
            seed_weights(body["seed"])
            return model_class(**init) if isinstance(init, dict) else model_class(*init)

        model, changed = built(build, body["seed"])
        model.eval()
        state = {k: weights.tensor(Layout.from_json(v)) for k, v in body["state"].items()}
        report = load_weights(model, state, anyway=changed)
        return self._runner.place(model), report

    def _another(self, body: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """Construct a model beside the first one, run it once, and put its answer in our memory."""
        assert self._outputs is not None
        weights = Block(fds[0], os.fstat(fds[0]).st_size, writable=False)
        try:
            with torch.enable_grad():
                model, _ = self._constructed(body, weights)
        finally:
            weights.close()
        args, kwargs = self._inputs(body["slot"])
        output, _ = self._runner.run(model, args, kwargs)
        leaves = self._answer(output, (args, kwargs))
        put_leaves(leaves, self._outputs)
        return {"leaves": describe(leaves)}

    def _take(self, model: Callable[..., Any]) -> None:
        torch.set_grad_enabled(False)
        self._model = model

    def _workload(self, body: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """Map the memory for inputs and for outputs."""
        self._kept = []
        self._slots = []
        self._brought = {}
        self._runner.release()
        inputs, outputs = fds
        stride = in_pages(body["slot_bytes"])
        window = Window(inputs, stride * body["slots"])
        os.close(inputs)
        for offset in body["guards"]:
            window.guard(offset)
        if self._outputs is not None:
            self._outputs.close()
        self._outputs = Block(outputs, os.fstat(outputs).st_size)
        self._slots = [values.bind(body["arguments"], window, slot * stride) for slot in range(body["slots"])]
        self._copy_inputs, self._written = body["copy"], body["written"]
        return {}

    def _rest(self, _: dict[str, Any], __: tuple[int, ...]) -> dict[str, Any]:
        """Drop all outputs and copies of inputs, and what heap and device have free, before timing."""
        self._kept, self._brought = [], {}
        level_allocator(self._blocked)
        self._runner.release()
        return {}

    # -- calls

    def _call(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Drop old outputs and run the model, all of it on the referee's clock, as a caller's loop does."""
        assert self._model is not None
        # The others stay alive during the call: buffers that are used again for later answers show.
        del self._kept[: max(0, len(self._kept) - body.get("keep", 1))]
        args, kwargs = self._inputs(body["slot"])
        output, device_ns = self._runner.run(self._model, args, kwargs)
        leaves = self._answer(output, (args, kwargs))
        if body.get("views"):
            leaves = detached(leaves)
        self._kept.append(leaves)
        return {"device_ns": device_ns, "leaves": locate(leaves)}

    def _pick(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Copy flat ranges of the last output to the referee's memory, which its clock waits for."""
        assert self._outputs is not None
        parts = [Leaf("part", part) for part in pick(self._kept[-1], body["parts"])]
        put_leaves(parts, self._outputs)
        return {"leaves": describe(parts)}

    def _arguments_of(self, slot: int) -> Slot:
        """Current arguments of a slot, in memory that the model can read."""
        args, kwargs = self._slots[slot]
        bring = self._runner.bring
        self._brought.pop(slot, None)  # first: inputs may be large
        self._brought[slot] = tuple(map(bring, args)), {k: bring(v) for k, v in kwargs.items()}
        return self._brought[slot]

    def _inputs(self, slot: int) -> Slot:
        """Arguments of a slot; those that the reference writes to are copies."""
        number = itertools.count()

        def own(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.clone() if next(number) in self._written or self._copy_inputs else tensor

        self._brought[slot] = pytree.tree_map_only(torch.Tensor, own, self._arguments_of(slot))
        return self._brought[slot]

    def _answer(self, output: Any, inputs: Slot) -> list[Leaf]:
        """An output, and what the inputs are that the reference writes to."""
        leaves = flatten(output)
        if self._written:
            tensors = _tensors(inputs)
            leaves += [Leaf(f"input {n} after the call", tensors[n]) for n in self._written]
        return leaves

    def _put(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Copy an output to the referee's memory, for a referee that may not read ours.

        `which` is `inputs` (of `slot`, as this process sees them) or how many outputs ago, 0 for the last.
        """
        assert self._outputs is not None
        leaves = self._chosen(body)
        put_leaves(leaves, self._outputs)
        aliases = [] if self._written else _aliases(leaves, self._seen(body["slot"]))
        return {"leaves": describe(leaves), "aliases": aliases}

    def _chosen(self, body: dict[str, Any]) -> list[Leaf]:
        if body["which"] == "inputs":
            return [Leaf(f"input {n}", t) for n, t in enumerate(_tensors(self._seen(body["slot"])))]
        leaves: list[Leaf] = self._kept[-1 - body["which"]]
        return leaves

    def _seen(self, slot: int) -> Slot:
        """Arguments of a slot as the last call left them."""
        return self._brought.get(slot, self._slots[slot])

    def _launches(self, _: dict[str, Any], __: tuple[int, ...]) -> dict[str, Any]:
        """How own kernels were launched so far, if the language's prelude keeps a record."""
        launches = getattr(sys.modules.get(PRELUDE.removesuffix(".py")), "launches", None)
        return {"launches": launches() if callable(launches) else []}

    def _gradients(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Put what a backward pass gives in our memory; with `between`, after a call on that slot.

        `written` says what of its caller's it writes to.
        """
        assert self._model is not None and self._outputs is not None
        args, kwargs = self._arguments_of(body["slot"])
        between = None
        if body["between"] is not None:
            others, named = self._inputs(body["between"])
            between = partial(self._model, *others, **named)
        leaves, written = gradients(self._model, args, kwargs, body["seed"], Way(**body["way"]), between)
        put_leaves(leaves, self._outputs)
        return {"leaves": describe(leaves), "written": written}

    def _state(self, body: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """Put some of the model's buffers in the referee's memory, or set weights to values in a file."""
        assert self._outputs is not None
        model = self._model
        if fds:
            block = Block(fds[0], os.fstat(fds[0]).st_size, writable=False)
            state = {k: block.tensor(Layout.from_json(v)) for k, v in body["state"].items()}
            report = load_weights(model, state, anyway=body.get("anyway", False))
            block.close()
            return report
        own = model.state_dict() if isinstance(model, torch.nn.Module) else {}
        leaves = [Leaf(key, own.get(key)) for key in body["keys"]]
        put_leaves(leaves, self._outputs)
        return {"leaves": describe(leaves)}

    def _attest(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Run once under a dispatch mode; say which operators and own kernels did the work."""
        from ..candidates.attestation import observe

        assert self._model is not None
        args, kwargs = self._arguments_of(body["slot"])
        answer = observe(self._model, args, kwargs, closely=body.get("closely", False))
        return answer | {"looked_up": self._lookups.foreign() if self._lookups else []}


def import_entry(folder: Path, name: str) -> ModuleType:
    """Import a solution's entry file, even if its name is taken (`numpy.py`)."""
    importlib.invalidate_caches()
    if name not in sys.modules:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f"solution_{name}", folder / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{name}.py cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def put_leaves(leaves: list[Leaf], block: Block) -> None:
    """Copy tensors densely into a block, each aligned.

    Raises:
        UnusableOutput: they do not fit.
    """
    if total_bytes(leaves) > block.nbytes:
        raise UnusableOutput(TOO_LARGE)
    offset = 0
    for leaf in leaves:
        if isinstance(leaf.value, torch.Tensor):
            layout = Layout.dense(leaf.value.shape, str(leaf.value.dtype).removeprefix("torch."), offset)
            block.tensor(layout).copy_(leaf.value.detach())
            offset += aligned(layout.nbytes)


def load_weights(model: Any, state: Mapping[str, torch.Tensor], anyway: bool = False) -> dict[str, Any]:
    """Load the reference's weights into a model if keys and shapes match.

    Args:
        anyway: load them even if the model has them, so that its hooks run.

    Returns:
        `weights`: `seed` if construction gave them already, `state_dict` if all were loaded, `partly` with
        `unmatched` keys otherwise.
    """
    own = dense_state(model) if isinstance(model, torch.nn.Module) else {}
    matching = {k: v for k, v in state.items() if k in own and own[k].shape == v.shape}
    unmatched = sorted((own.keys() | state.keys()) - matching.keys())[:20]
    same = all(torch.equal(own[k].cpu(), v) for k, v in matching.items())
    if same and not unmatched and not anyway:
        return {"weights": "seed", "unmatched": []}
    if matching:
        inference = any(t.is_inference() for t in own.values())  # writing to these is an error elsewhere
        with torch.inference_mode() if inference else nullcontext():
            model.load_state_dict({k: v.clone() for k, v in matching.items()}, strict=False)
    return {"weights": "partly" if unmatched else "state_dict", "unmatched": unmatched}


def _tensors(inputs: Slot) -> list[torch.Tensor]:
    return [x for x in pytree.tree_leaves(inputs) if isinstance(x, torch.Tensor)]


def detached(leaves: list[Leaf]) -> list[Leaf]:
    """Other tensors on the same memory, as a caller has who keeps slices of an answer."""
    return [
        Leaf(leaf.path, leaf.value.detach() if isinstance(leaf.value, torch.Tensor) else leaf.value)
        for leaf in leaves
    ]


def _aliases(leaves: list[Leaf], inputs: Slot) -> list[int]:
    starts = {t.untyped_storage().data_ptr() for t in _tensors(inputs)}
    return [
        number
        for number, leaf in enumerate(leaves)
        if isinstance(leaf.value, torch.Tensor)
        and leaf.value.numel()
        and leaf.value.untyped_storage().data_ptr() in starts
    ]
