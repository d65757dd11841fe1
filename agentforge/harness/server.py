"""The loop of a worker: build a model, run it on shared inputs, hand out bytes.

Candidates and baselines run this same code, so that its costs are the same for every measured party. In
a candidate's process nothing here is trusted: the referee checks whatever comes back.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from agentforge.languages import PRELUDE

from . import values
from .gradients import gradients
from .leaves import Leaf, UnusableOutput, describe, flatten, locate, pick, total_bytes
from .memory import Block, Layout, Window, aligned, in_pages
from .runner import HostRunner, Runner, runner_for
from .weights import varied_construction
from .wire import Channel, ChannelClosed

Slot = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""
Handler = Callable[[dict[str, Any], tuple[int, ...]], dict[str, Any]]
_MAX_TEXT = 4000


class Server:
    """Answers the referee's messages until it hangs up."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._model: Callable[..., Any] | None = None
        self._runner: Runner = HostRunner()
        self._slots: list[Slot] = []
        self._brought: dict[int, Slot] = {}
        """Arguments of slots where the model read them last."""
        self._window = Window(in_pages(0))
        self._stride = 0
        self._guards: list[int] = []
        self._shown: list[int] = []
        """Files to close while no clock runs."""
        self._copy_inputs = False
        self._outputs: Block | None = None
        self._kept: list[Any] = []
        """Outputs that the referee may still look at, the newest last."""
        self._handlers: dict[str, Handler] = {
            "load": self._load,
            "workload": self._workload,
            "ready": self._ready,
            "call": self._call,
            "pick": self._pick,
            "put": self._put,
            "attest": self._attest,
            "gradients": self._gradients,
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
            if "slot" in body and fds:
                self._show(body["slot"], fds[0])
            reply = self._handlers[body["op"]](body, fds)
        except BaseException as error:
            reply = {"error": describe_error(error)}
        reply["id"] = body.get("id")
        return reply

    # -- construction

    def _load(self, body: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """Import the entry file and construct the model; `fds` holds the weights."""
        torch.set_num_threads(body["threads"])
        self._runner = runner_for(body["device"])
        weights = Block(fds[0], os.fstat(fds[0]).st_size, writable=False)
        if body["compiled"]:
            shutil.copytree(body["compiled"], os.environ["TORCHINDUCTOR_CACHE_DIR"], dirs_exist_ok=True)
        sys.path.insert(0, body["folder"])
        if (Path(body["folder"]) / PRELUDE).is_file():
            importlib.import_module(PRELUDE.removesuffix(".py"))
        module = import_entry(Path(body["folder"]), body["module"])
        model_class = getattr(module, body["class"], None)
        if model_class is None:
            raise AttributeError(f"the solution has no class {body['class']}")
        init = values.decode(body["init"], weights)
        with varied_construction(body["seed"]):
            torch.manual_seed(body["seed"])
            model = model_class(**init) if isinstance(init, dict) else model_class(*init)
        model.eval()
        report = load_weights(
            model, {k: weights.tensor(Layout.from_json(v)) for k, v in body["state"].items()}
        )
        self._take(self._runner.place(model))
        weights.close()
        return report

    def _take(self, model: Callable[..., Any]) -> None:
        torch.set_grad_enabled(False)
        self._model = model

    def _workload(self, body: dict[str, Any], fds: tuple[int, ...]) -> dict[str, Any]:
        """Make room for a workload's inputs, map the memory for outputs."""
        self._kept = []
        self._slots = []
        self._brought = {}
        self._stride = in_pages(body["slot_bytes"])
        self._window = Window(self._stride * body["slots"])
        self._guards = body["guards"]
        if self._outputs is not None:
            self._outputs.close()
        self._outputs = Block(fds[0], os.fstat(fds[0]).st_size)
        self._slots = [
            values.bind(body["arguments"], self._window, slot * self._stride) for slot in range(body["slots"])
        ]
        self._copy_inputs = body["copy"]
        return {}

    def _show(self, slot: int, fd: int) -> None:
        """Let a slot have the content of a file."""
        self._window.show(fd, slot * self._stride, self._stride)
        self._shown.append(fd)
        for offset in self._guards:
            self._window.guard(slot * self._stride + offset)

    # -- calls

    def _ready(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Before a call, while no clock runs: let go of a slot's content and of old outputs."""
        self._window.hide(body["slot"] * self._stride, self._stride)
        while self._shown:
            os.close(self._shown.pop())
        # The others stay alive during the call: buffers that are used again for later answers show.
        del self._kept[: max(0, len(self._kept) - body["keep"])]
        return {}

    def _call(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        assert self._model is not None
        start = time.perf_counter_ns()
        args, kwargs = self._inputs(body["slot"])
        output, device_ns = self._runner.run(self._model, args, kwargs)
        leaves = flatten(output)
        took = time.perf_counter_ns() - start
        self._kept.append(leaves)
        return {"ns": took, "device_ns": device_ns, "leaves": locate(leaves)}

    def _pick(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Copy flat ranges of the last output to the referee's memory, which its clock waits for."""
        assert self._outputs is not None
        parts = [Leaf("part", part) for part in pick(self._kept[-1], body["parts"])]
        put_leaves(parts, self._outputs)
        return {"leaves": describe(parts)}

    def _arguments_of(self, slot: int) -> Slot:
        """Arguments of a slot as they are now, where the model can read them."""
        args, kwargs = self._slots[slot]
        bring = self._runner.bring
        self._brought[slot] = tuple(map(bring, args)), {k: bring(v) for k, v in kwargs.items()}
        return self._brought[slot]

    def _inputs(self, slot: int) -> Slot:
        """Arguments of a slot, copied where the reference writes to its inputs."""
        args, kwargs = self._arguments_of(slot)
        if self._copy_inputs:
            args = tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in args)
            kwargs = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        return args, kwargs

    def _put(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Copy an output to the referee's memory, for a referee that may not read ours.

        `which` is `inputs` (of `slot`, as this process sees them) or how many outputs ago, 0 for the last.
        """
        assert self._outputs is not None
        leaves = self._chosen(body)
        put_leaves(leaves, self._outputs)
        return {"leaves": describe(leaves), "aliases": _aliases(leaves, self._seen(body["slot"]))}

    def _chosen(self, body: dict[str, Any]) -> list[Leaf]:
        if body["which"] == "inputs":
            args, kwargs = self._seen(body["slot"])
            return flatten([v for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)])
        leaves: list[Leaf] = self._kept[-1 - body["which"]]
        return leaves

    def _seen(self, slot: int) -> Slot:
        """Arguments of a slot as the last call left them."""
        return self._brought.get(slot, self._slots[slot])

    def _launches(self, _: dict[str, Any], __: tuple[int, ...]) -> dict[str, Any]:
        """How own kernels were launched so far, where the language's prelude keeps a record."""
        launches = getattr(sys.modules.get(PRELUDE.removesuffix(".py")), "launches", None)
        return {"launches": launches() if callable(launches) else []}

    def _gradients(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Put what a backward pass gives in the referee's memory."""
        assert self._model is not None and self._outputs is not None
        args, kwargs = self._arguments_of(body["slot"])
        leaves = gradients(self._model, args, kwargs, body["seed"])
        put_leaves(leaves, self._outputs)
        return {"leaves": describe(leaves)}

    def _attest(self, body: dict[str, Any], _: tuple[int, ...]) -> dict[str, Any]:
        """Run once under a dispatch mode; say which operators and own kernels did the work."""
        from .attestation import observe

        assert self._model is not None
        args, kwargs = self._arguments_of(body["slot"])
        return observe(self._model, args, kwargs)


def import_entry(folder: Path, name: str) -> ModuleType:
    """Import a solution's entry file, also where its name is taken (`numpy.py`)."""
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
        raise UnusableOutput("the output is larger than the reference's")
    offset = 0
    for leaf in leaves:
        if isinstance(leaf.value, torch.Tensor):
            layout = Layout.dense(leaf.value.shape, str(leaf.value.dtype).removeprefix("torch."), offset)
            block.tensor(layout).copy_(leaf.value.detach())
            offset += aligned(layout.nbytes)


def load_weights(model: Any, state: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Give a model the reference's weights where keys and shapes match.

    Returns:
        `weights`: `seed` where construction under the same seed gave them already, `state_dict` where all
        were loaded, `partly` with `unmatched` keys otherwise.
    """
    own = model.state_dict() if isinstance(model, torch.nn.Module) else {}
    matching = {k: v for k, v in state.items() if k in own and own[k].shape == v.shape}
    unmatched = sorted((own.keys() | state.keys()) - matching.keys())[:20]
    if all(torch.equal(own[k].cpu(), v) for k, v in matching.items()) and not unmatched:
        return {"weights": "seed", "unmatched": []}
    if matching:
        model.load_state_dict({k: v.clone() for k, v in matching.items()}, strict=False)
    return {"weights": "partly" if unmatched else "state_dict", "unmatched": unmatched}


def _aliases(leaves: list[Leaf], inputs: Slot) -> bool:
    starts = {
        t.untyped_storage().data_ptr()
        for t in (*inputs[0], *inputs[1].values())
        if isinstance(t, torch.Tensor)
    }
    return any(
        isinstance(leaf.value, torch.Tensor)
        and leaf.value.numel()
        and leaf.value.untyped_storage().data_ptr() in starts
        for leaf in leaves
    )


def describe_error(error: BaseException) -> dict[str, str]:
    """An exception as text of bounded length."""
    try:
        message = str(error)[:_MAX_TEXT]
    except Exception:
        message = "(its message cannot be shown)"
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-6))
    return {"type": type(error).__name__[:200], "message": message, "traceback": text[-_MAX_TEXT:]}
