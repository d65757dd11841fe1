"""A stitched forward as one CUDA graph: on a simulated GPU, and without one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from agentforge.schema import Definition, Solution
from agentforge.stitch.runtime.graph import REPLAY, Replayed

from .making import BLOCK, CNN, VENDOR, Stitched, from_reference, same, stitch_in_process


class Graph(TorchDispatchMode):
    """Replaces a CUDA graph: notes operators, undoes what they wrote, and runs them again in place."""

    made: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        super().__init__()
        self.made.append(self)
        self.steps: list[tuple[Any, Any, Any, Any]] = []
        self.before: list[tuple[torch.Tensor, torch.Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable:
            self.before.append((args[0], args[0].clone()))
        result = func(*args, **kwargs)
        self.steps.append((func, args, kwargs, result))
        return result

    def replay(self) -> None:
        with torch.inference_mode():
            for func, args, kwargs, result in self.steps:
                again = func(*args, **kwargs)
                fresh = not func._schema.is_mutable and not any(r.alias_info for r in func._schema.returns)
                if fresh and isinstance(result, torch.Tensor):
                    result.copy_(again)


@contextmanager
def recording(graph: Graph, *, stream: Any, capture_error_mode: str) -> Iterator[None]:
    assert capture_error_mode in ("global", "thread_local", "relaxed")
    with graph:
        yield
    for tensor, value in reversed(graph.before):
        tensor.copy_(value)


class Stream:
    """A stream, or an event."""

    def __init__(self, device: Any = "cpu") -> None:
        self.device = torch.device(device)
        self.wait_stream = self.wait_event = self.record = lambda *_: None


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pretended = {
        "CUDAGraph": Graph, "graph": recording, "Stream": Stream, "Event": Stream, "current_stream": Stream,
        "stream": lambda _: nullcontext(), "is_current_stream_capturing": lambda: False,
    }  # fmt: skip
    for name, value in pretended.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda *_: None)


def torch_code(definition: Definition) -> Solution | None:
    return None if definition.op_type in VENDOR else from_reference(definition)


def stitched(source: str, folder: Path) -> Stitched:
    return stitch_in_process(source, folder, "kernels+graph", torch_code)


@pytest.fixture
def block(tmp_path: Path) -> Stitched:
    return stitched(BLOCK, tmp_path / "block")


def replays() -> int:
    import agentforge_cpp

    return int(agentforge_cpp.calls().get(REPLAY, 0))


@pytest.mark.usefixtures("gpu")
def test_replays_give_what_the_original_gives_and_count_as_runs(block: Stitched) -> None:
    original = block.model()
    optimized = block.package.optimize(copy.deepcopy(original))
    before, kept = replays(), []
    for seed in range(4):
        args, kwargs = block.inputs(seed)
        with torch.inference_mode(seed % 2 == 0), torch.no_grad():
            kept.append((optimized(*args, **kwargs), original(*args, **kwargs)))
    assert all(same(got, expected) for got, expected in kept)  # no replay overwrites an earlier result
    assert replays() - before == 3  # the first call runs, the second is recorded
    assert Graph.made and all(graph.agentforge_counted for graph in Graph.made)  # no worker counts them again
    runs = block.package.calls()
    assert runs and all(n % 4 == 0 and n for n in runs.values())


@pytest.mark.usefixtures("gpu")
def test_weights_are_read_where_they_lie_and_new_ones_recorded_anew(block: Stitched) -> None:
    original = block.model()
    optimized = block.package.optimize(copy.deepcopy(original))
    args, kwargs = block.inputs(0)
    with torch.no_grad():
        for _ in range(3):
            optimized(*args, **kwargs)
        for model in (original, optimized):
            model.down.weight.mul_(2)
        assert same(optimized(*args, **kwargs), original(*args, **kwargs))
        for model in (original, optimized):
            model.up.weight = torch.nn.Parameter(model.up.weight * 3)
        before = replays()
        for expected in (0, 1, 2):
            assert same(optimized(*args, **kwargs), original(*args, **kwargs))
            assert replays() - before == expected


@pytest.mark.usefixtures("gpu")
def test_copies_have_recordings_of_their_own(block: Stitched) -> None:
    original = block.model()
    optimized = [block.package.optimize(copy.deepcopy(original)) for _ in range(5)]
    args, kwargs = block.inputs(0)

    def called(models: list[torch.nn.Module], times: int) -> int:
        before = replays()
        with torch.no_grad():
            for model in models * times:
                assert same(model(*args, **kwargs), original(*args, **kwargs))
        return replays() - before

    assert called(optimized[:3], 3) == 6
    assert called(optimized[3:], 2) == 2  # the fifth takes the place of the first
    assert called(optimized[1:3], 1) == 2
    assert called(optimized[:1], 1) == 0


@pytest.mark.usefixtures("gpu")
def test_buffers_are_written_once_a_call(tmp_path: Path) -> None:
    cnn = stitched(CNN, tmp_path / "cnn")
    model = cnn.package.optimize(cnn.model().eval())
    args, _ = cnn.inputs(0)
    before = replays()
    with torch.no_grad():
        for _ in range(4):
            model(*args)
    assert replays() - before == 3
    assert model.seen.item() == 4


@pytest.mark.usefixtures("gpu")
def test_what_cannot_be_recorded_runs_as_it_was(block: Stitched, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(torch.cuda, "graph", refuse)
    original = block.model()
    optimized = block.package.optimize(copy.deepcopy(original))
    args, kwargs = block.inputs(0)
    before = replays()
    with torch.no_grad():
        optimized(*args, **kwargs)
        with pytest.warns(UserWarning, match="launched one by one: operation not permitted"):
            assert same(optimized(*args, **kwargs), original(*args, **kwargs))
        assert same(optimized(*args, **kwargs), original(*args, **kwargs))
    assert replays() == before


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("still", [0, 1])
def test_each_gpu_has_a_stream_and_a_recording_of_its_own(
    still: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, str]] = []
    streams: list[str] = []

    @contextmanager
    def on(stream: Stream) -> Iterator[None]:
        streams.append(stream.device.type)
        yield

    def graph(graph: Graph, *, stream: Stream, capture_error_mode: str) -> Any:
        streams.append(stream.device.type)
        return recording(graph, stream=stream, capture_error_mode=capture_error_mode)

    def forward(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        ran.append((streams[-1], x.device.type))
        return weight + x

    monkeypatch.setattr(torch.cuda, "stream", on)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    counts: Any = SimpleNamespace(calls=dict, count=lambda *_: None)
    replayed = Replayed(forward, still, [], counts)
    for device in ("cpu", "meta"):  # two simulated GPUs
        weight, x = torch.ones(2, device=device), torch.ones(2, device=device)
        for _ in range(3):
            assert replayed(weight, x).device.type == device
    assert ran == [("cpu", "cpu")] * 2 + [("meta", "meta")] * 2


def test_on_a_cpu_it_runs_as_it_is(block: Stitched) -> None:
    original = block.model()
    optimized = block.package.optimize(copy.deepcopy(original))
    before = replays()
    with torch.no_grad():
        for seed in range(3):
            args, kwargs = block.inputs(seed)
            assert same(optimized(*args, **kwargs), original(*args, **kwargs))
    assert replays() == before


def test_a_forward_that_writes_to_its_input_is_not_replayed(tmp_path: Path) -> None:
    source = (
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        x.view(-1)[0] = 1.0\n        return (x * 2).softmax(-1)\n\n\n"
        "def get_inputs():\n    return [torch.randn(4, 4)]\n\n\ndef get_init_inputs():\n    return []\n"
    )
    made = stitched(source, tmp_path / "writes")
    assert [plan["replayable"] for plan in made.plans] == [False]
