"""Independent steps on several streams: on random programs and real models, on a GPU that is simulated."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, Node
from torch.utils import _pytree

from agentforge.stitch.graph.dataflow import needs, schedule
from agentforge.stitch.graph.derived import Split
from agentforge.stitch.graph.printer import events_of, print_forward
from agentforge.stitch.graph.streams import StepCost, place
from agentforge.stitch.runtime.branches import STREAMS, Branched
from agentforge.stitch.runtime.graph import REPLAY, Replayed

from .making import BLOCK, CNN, TOWERS, Stitched, same, stitch_in_process
from .simulated import Gpu

UNARY = [aten.default for aten in (torch.ops.aten.neg, torch.ops.aten.sin, torch.ops.aten.contiguous)]
VIEWS = [torch.ops.aten.t.default, torch.ops.aten.alias.default, torch.ops.aten.detach.default]
BINARY = [torch.ops.aten.add.Tensor, torch.ops.aten.mul.Tensor, torch.ops.aten.mm.default]
WRITES = [torch.ops.aten.neg_.default, torch.ops.aten.add_.Tensor, torch.ops.aten.copy_.default]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other are most of the time of operators on so little."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Counts(ModuleType):
    """Replaces the module that counts kernels' calls."""

    def __init__(self) -> None:
        super().__init__("counts")
        self.seen: dict[str, int] = {}

    def count(self, name: str, times: int = 1) -> None:
        self.seen[name] = self.seen.get(name, 0) + times

    def calls(self) -> dict[str, int]:
        return dict(self.seen)


def program(draw: random.Random, size: int) -> Graph:
    """Operators on 3 x 3 matrices: fresh results, views, writes to inputs and to what others see."""
    graph, mode = Graph(), FakeTensorMode()
    values: list[Node] = []
    for name in ("x", "y"):
        values.append(graph.placeholder(name))
        values[-1].meta["val"] = mode.from_tensor(torch.ones(3, 3))
    for _ in range(size):
        operator = draw.choice(draw.choice([UNARY, BINARY, BINARY, VIEWS, WRITES if size < 12 else UNARY]))
        takes = sum(str(argument.type) == "Tensor" for argument in operator._schema.arguments)
        taken = draw.choices(values[-6:], k=takes)
        if operator in WRITES and len({n.meta["val"].untyped_storage()._cdata for n in taken}) < takes:
            continue  # torch refuses to write to what it reads in another order
        node = graph.call_function(operator, tuple(taken))
        with mode:
            node.meta["val"] = operator(*(argument.meta["val"] for argument in node.args))
        values.append(node)
    graph.output(tuple(draw.sample(values, 3)))
    return graph


def written(graph: Graph, draw: random.Random, *, ordered: bool = True) -> tuple[Branched, Counts]:
    """The program as a stitched forward, with times that are drawn."""
    nodes = list(graph.nodes)
    steps, _ = schedule(nodes, [])
    needed = needs(steps) if ordered else [frozenset[int]() for _ in steps]
    times = [draw.choice((0.0, 1e-6, 1e-5, 5e-5)) for _ in steps]
    streams = place([StepCost(n, t, draw.choice((0.1, 1.0))) for n, t in zip(needed, times, strict=True)])
    inputs, results = [n for n in nodes if n.op == "placeholder"], nodes[-1].all_input_nodes
    names = ", ".join(node.name for node in results)
    source = print_forward(Split(steps), inputs, {}, f"({names},)", results, "A program.", streams)
    counts = Counts()
    branched = Branched(streams.count, len(events_of(streams)), counts)
    namespace: dict[str, Any] = dict(branched.statements)
    exec(source, namespace)
    branched.forward = namespace["forward"]
    return branched, counts


def expected(graph: Graph, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Results of the unchanged program, and its inputs afterwards."""
    values = dict(zip((n for n in graph.nodes if n.op == "placeholder"), inputs, strict=True))
    for node in graph.nodes:
        if node.op == "call_function":
            values[node] = node.target(*(values[a] for a in node.args))
    output = list(graph.nodes)[-1]
    return [
        torch.ops.aten.clone.default(value)
        for value in (*(values[n] for n in output.all_input_nodes), *inputs)
    ]


def agrees(seed: int, gpu: Gpu, graph: Graph, forward: Any) -> bool:
    """Whether two calls give what the program gives, though inputs come late and go at once."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [[torch.rand(3, 3, generator=generator) - 0.5 for _ in range(2)] for _ in range(2)]
    clone = torch.ops.aten.clone.default
    kept: list[torch.Tensor] = []
    for inputs in drawn:
        given = [gpu.launch(clone, value) for value in inputs]
        results = forward(*given)
        kept += [gpu.launch(clone, value) for value in (*results, *given)]
        del given, results
    seen = [gpu.read(value) for value in kept]
    wanted = [value for inputs in drawn for value in expected(graph, [clone(i) for i in inputs])]
    return all(torch.equal(a, b) for a, b in zip(seen, wanted, strict=True))


@settings(max_examples=40, phases=[Phase.generate])
@given(st.integers(0, 1 << 32))
def test_every_order_that_the_streams_permit_gives_what_one_stream_gives(seed: int) -> None:
    draw, gpu = random.Random(seed), Gpu(seed)
    graph = program(draw, draw.randint(2, 24))
    branched, counts = written(graph, draw)
    with pytest.MonkeyPatch.context() as patch:
        gpu.become(patch, branched.forward)
        assert agrees(seed, gpu, graph, branched)
    assert counts.seen == {STREAMS: 2}


def forgets(what: str, seed: int, patch: pytest.MonkeyPatch) -> bool:
    """True if a program gives a wrong result after something was forgotten."""
    draw, gpu = random.Random(seed), Gpu(seed)
    graph = program(draw, 20)
    branched, _ = written(graph, draw, ordered=what != "order")
    gpu.become(patch, branched.forward)
    if what == "memory":
        patch.setattr(torch.Tensor, "record_stream", lambda *_: None)
    if what == "waits":
        patch.setattr("tests.stitch.simulated.Stream.wait_event", lambda *_: None)
    if what == "the caller":
        patch.setattr(torch.cuda, "current_stream", lambda *_: torch.cuda.Stream())
    return not agrees(seed, gpu, graph, branched)


@pytest.mark.parametrize("what", ["memory", "waits", "order", "the caller"])
def test_the_simulated_gpu_sees_what_is_forgotten(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def sees(seed: int) -> bool:
        with monkeypatch.context() as patch:
            return forgets(what, seed, patch)

    assert any(map(sees, range(40)))


def example(name: str, sizes: dict[str, str]) -> str:
    """A model of the examples, smaller."""
    text = (Path(__file__).parents[2] / "examples" / f"{name}.py").read_text()
    for large, small in sizes.items():
        assert large in text
        text = text.replace(large, small)
    return text


MODELS = {
    "towers": TOWERS,
    "block": BLOCK,
    "cnn": CNN,
    "dlrm": example("dlrm", {"2048, 13, 8, 10000, 64, 4": "8, 13, 8, 20, 8, 4"}),
    "gpt2": example("gpt2", {"2, 256": "2, 8", "8192, 384, 6, 4": "50, 24, 2, 1"}),
}


@pytest.fixture(scope="module", params=MODELS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stitched:
    folder = tmp_path_factory.mktemp(request.param)
    return stitch_in_process(MODELS[request.param], folder, "kernels+graph+streams", lambda _: None)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("graph", [False, True])
def test_models_compute_what_they_did(
    made: Stitched, graph: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counts()
    original = made.model().eval()
    optimized = made.package.optimize(copy.deepcopy(original))
    unit, gpu = type(optimized)._agentforge_unit, Gpu(seed)  # type: ignore[attr-defined]
    replayed = unit.eager
    branched = replayed._forward
    monkeypatch.setattr(branched, "_counts", counts)
    monkeypatch.setattr(branched, "_local", threading.local())  # it may hold streams of another test's GPU
    monkeypatch.setattr(unit, "eager", Replayed(branched, replayed._still, [], counts) if graph else branched)
    drawn = [made.inputs(number) for number in range(4)]
    with torch.no_grad(), monkeypatch.context() as patch:
        wanted = [original(*copy.deepcopy(args), **copy.deepcopy(kwargs)) for args, kwargs in drawn]
        gpu.become(patch, branched.forward)
        kept = []
        for call in drawn:
            args, kwargs = on(gpu, call)
            results = optimized(*args, **kwargs)
            kept.append(on(gpu, results))
            del args, kwargs, results
        for tensor in original.state_dict().values():
            gpu.launch(torch.ops.aten.zero_.default, tensor)
        seen = _pytree.tree_map_only(torch.Tensor, gpu.read, kept)
    assert same(seen, wanted)
    assert counts.seen == ({STREAMS: 4, REPLAY: 3} if graph else {STREAMS: 4})


def on(gpu: Gpu, values: Any) -> Any:
    """The same, as copies that are made by a launch."""
    return _pytree.tree_map_only(
        torch.Tensor, lambda tensor: gpu.launch(torch.ops.aten.clone.default, tensor), values
    )


def test_without_a_gpu_and_under_torch_compile_the_statements_do_nothing(tmp_path: Path) -> None:
    made = stitch_in_process(TOWERS, tmp_path / "towers", "kernels+streams", lambda _: None)
    assert made.plans[0]["branches"]["streams"] > 1
    original = made.model()
    optimized = made.package.optimize(copy.deepcopy(original))
    args, _ = made.inputs(0)
    with torch.no_grad():
        assert same(optimized(*args), original(*args))
        compiled = torch.compile(optimized, backend="eager", fullgraph=True)
        assert same(compiled(*args), original(*args))


def test_a_forward_that_fails_leaves_the_callers_stream_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(0)
    branched = Branched(3, 1, Counts())
    statements = branched.statements

    def forward(x: torch.Tensor) -> None:
        statements["_mark"](0)
        for stream in (1, 2):
            statements["_on_stream"](stream, [0], x)
            gpu.launch(torch.ops.aten.neg_.default, x)
        raise RuntimeError("wrong shape")

    branched.forward = forward
    gpu.become(monkeypatch, forward)
    before = gpu.current
    with pytest.raises(RuntimeError, match="wrong shape"):
        branched(torch.ones(3))
    assert gpu.current is before
    certain = gpu.running.behind(before)
    assert all(certain[stream] >= count for stream, count in gpu.running.launched.items())
    assert len(certain) == 3


def test_after_a_recording_that_failed_a_forward_uses_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch up to 2.12 would never free what another stream has used."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    for seed in range(20):
        draw = random.Random(seed)
        graph = program(draw, 12)
        branched, counts = written(graph, draw)
        if branched._streams > 1:
            break
    gpu = Gpu(seed)
    gpu.become(monkeypatch, branched.forward)
    monkeypatch.setattr(torch.cuda, "graph", refuse)
    replayed = Replayed(branched, 0, [], counts)
    with pytest.warns(UserWarning, match="launched one by one"):
        assert agrees(seed, gpu, graph, replayed)
    assert counts.seen == {STREAMS: 1}
    assert agrees(seed, gpu, graph, replayed)
    assert counts.seen == {STREAMS: 1}
