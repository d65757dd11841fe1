"""A model with frozen weights notices each change of what it keeps, and nothing else."""

from __future__ import annotations

import copy
import gc
import time
import weakref
from collections import UserDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
import torch
import torch._dynamo.config as dynamo
import torch._inductor.config as inductor
from torch._subclasses import FakeTensorMode

from agentforge.stitch.runtime import baseline
from agentforge.stitch.runtime.baseline import Contiguous, Frozen, FrozenUnit


class Keeps(torch.nn.Module):
    """Keeps tensors in attributes, containers, other objects and a layer that is not registered."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.mask = torch.nn.Linear(3, 3), torch.ones(3)
        self.tables = [torch.rand(3), torch.rand(3)]
        self.nested = {"a": (SimpleNamespace(shift=torch.rand(3)),)}
        self.hidden = [torch.nn.Linear(3, 3)]
        self.owner = [self]
        self.cache: dict[int, torch.Tensor] = {}
        self.kept: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.net(x)) * self.tables[0] + self.mask
        return y + self.nested["a"][0].shift

    def fills(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) not in self.cache:
            self.cache[len(x)] = self.kept = torch.ones(len(x), 3)
        return self.net(x) * self.cache[len(x)]


Change = Callable[[Any], object]

CHANGES: dict[str, Change] = {
    "an item is written": lambda m: m.tables[0].mul_(2),
    "an item is replaced": lambda m: m.tables.__setitem__(0, torch.zeros(3)),
    "a list is replaced": lambda m: setattr(m, "tables", [torch.zeros(3), torch.zeros(3)]),
    "an attribute is replaced": lambda m: setattr(m, "mask", torch.zeros(3)),
    "an object's attribute is written": lambda m: m.nested["a"][0].shift.add_(1),
    "an object's attribute is replaced": lambda m: setattr(m.nested["a"][0], "shift", torch.zeros(3)),
}
OTHERS: dict[str, Change] = {
    "a list becomes shorter": lambda m: m.tables.pop(),
    "a key is removed": lambda m: m.nested.pop("a"),
    "a weight is replaced": lambda m: setattr(m.net, "weight", torch.nn.Parameter(torch.zeros(3, 3))),
    "a layer is replaced": lambda m: setattr(m, "net", torch.nn.Linear(3, 3)),
    "a layer that is not registered is written": lambda m: m.hidden[0].bias.data.add_(1),
}


def test_torch_compile_is_made_for_each_of_several_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(torch, "compile", lambda _, **options: seen.append(options))
    model = Keeps()
    limit = dynamo.recompile_limit
    with dynamo.patch(recompile_limit=8):
        for _ in range(2):
            baseline.compile_model(model, "compile", 12)
            assert dynamo.recompile_limit == 20
    with dynamo.patch(recompile_limit=64):
        baseline.compile_model(model, "compile", 12)
        assert dynamo.recompile_limit == 64, "the user's"
    baseline.compile_model(model, "compile+max-autotune")
    assert dynamo.recompile_limit == limit
    assert seen == [{"mode": None, "dynamic": False}] * 3 + [{"mode": "max-autotune", "dynamic": None}]


@pytest.mark.parametrize("kind", ["parameters", "buffers"])
def test_an_answer_on_a_gpu_stays_as_it_is(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With CUDA graphs, the next call would write to its memory."""
    modes: list[str | None] = []
    monkeypatch.setattr(torch, "compile", lambda _, mode, dynamic: modes.append(mode))
    model = Keeps()
    monkeypatch.setattr(model, kind, lambda: iter([SimpleNamespace(is_cuda=True)]))
    for mode in ("compile+max-autotune", "compile"):
        baseline.compile_model(model, mode)
    assert modes == ["max-autotune-no-cudagraphs", None]


@pytest.mark.parametrize("mode", ["compile", "compile+freezing", "compile+contiguous"])
def test_a_module_of_torchs_own_class_is_compiled(mode: str) -> None:
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval(), torch.rand(2, 8)
    expected, frames = model(x), torch._dynamo.utils.counters["frames"]
    before = frames["ok"]
    baseline.compile_model(model, mode)
    with torch.no_grad():
        torch.testing.assert_close(model(x), expected)
    assert frames["ok"] == before + 1


@pytest.mark.parametrize("mode", ["compile", "compile+freezing", "compile+contiguous"])
def test_a_forward_that_is_no_method_is_compiled(mode: str) -> None:
    """As accelerate's hooks set it."""

    class Layer(torch.nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input)

    torch._dynamo.reset()
    model, x = Layer(8, 8).eval(), torch.rand(2, 8)
    expected, frames = model(x), torch._dynamo.utils.counters["frames"]
    model.forward = partial(type(model).forward, model)  # type: ignore[method-assign]
    before = frames["ok"]
    baseline.compile_model(model, mode)
    with torch.no_grad():
        torch.testing.assert_close(model(x), expected)
    assert frames["ok"] == before + 1


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("mode", ["compile", "compile+freezing", "compile+contiguous"])
@pytest.mark.parametrize("parametrized", [False, True])
def test_a_deep_copy_runs_eager_with_its_own_weights(mode: str, parametrized: bool) -> None:
    model, x = torch.nn.Linear(3, 3), torch.rand(2, 3)
    if parametrized:  # torch gives it a __deepcopy__ that copies all attributes
        torch.nn.utils.parametrizations.weight_norm(model)
    baseline.compile_model(model, mode)
    twin, expected = copy.deepcopy(model), model(x)
    with torch.no_grad():
        model.bias.add_(1)
    assert twin._compiled_call_impl is None
    assert torch.equal(twin(x), expected) and not torch.equal(model(x), expected)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("change", CHANGES | OTHERS)
def test_each_change_of_a_kept_tensor_is_noticed(change: str) -> None:
    model = Keeps().eval()
    model.forward = model.net.forward  # type: ignore[method-assign]
    call, x = Frozen(model, False), torch.rand(2, 3)
    with torch.inference_mode():
        for _ in range(3):
            call(x)
            assert not call._changed
    with torch.no_grad():
        (CHANGES | OTHERS)[change](model)
    with torch.inference_mode():
        call(x)
    assert call._changed


@pytest.mark.usefixtures("uncompiled")
def test_a_unit_freezes_the_weights_of_each_module_until_they_change() -> None:
    plain: list[torch.Tensor] = []

    def forward(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return x @ weight

    def in_default_mode(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        plain.append(weight)
        return forward(weight, x)

    unit, x = FrozenUnit(forward, 1, in_default_mode, False), torch.rand(2, 3)
    models = [torch.nn.Linear(3, 3).eval() for _ in range(3)]

    def right() -> bool:
        with torch.inference_mode():
            return all(torch.equal(unit.of(m)(m.weight, x), x @ m.weight) for m in models for _ in range(2))

    assert right() and not plain
    models[0].weight = torch.nn.Parameter(torch.rand(3, 3))
    models[1].weight.data.mul_(2)
    assert right() and [weight is models[0].weight for weight in plain] == [True, True]
    gone = weakref.ref(models[2].weight)
    del models[2]
    gc.collect()
    assert gone() is None
    kept = unit.of(models[1])
    unit.forget(models[1])
    assert unit.of(models[1]) is not kept


@pytest.mark.usefixtures("uncompiled")
def test_compiled_code_runs_while_another_thread_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "_is_compiling_flag", True)  # as Dynamo sets it, for all threads
    model, x = Keeps().eval(), torch.rand(2, 3)
    compiled: list[Any] = []
    frozen, contiguous = Frozen(model, False), Contiguous(model)
    frozen._plain = contiguous._compiled = compiled.append
    frozen(x)
    contiguous(x)
    assert len(compiled) == 2
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:  # as in a compilation
        fake = mode.from_tensor(x)
        assert frozen(fake).shape == contiguous(fake).shape == x.shape
    assert len(compiled) == 2


@pytest.mark.usefixtures("uncompiled")
def test_tensors_that_the_first_call_makes_change_nothing() -> None:
    model = Keeps().eval()
    model.forward = model.fills  # type: ignore[method-assign]
    call = Frozen(model, False)
    with torch.inference_mode():
        for _ in range(3):
            call(torch.rand(2, 3))
    assert len(model.cache) == 1 and not call._changed


@pytest.mark.usefixtures("uncompiled")
def test_another_thread_may_notice_a_change_during_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, threads = Keeps().eval(), torch.rand(2, 3), ThreadPoolExecutor(1)
    call, really_same = Frozen(model, False), baseline._same

    def other_call() -> None:
        model.mask.mul_(2)
        with torch.inference_mode():
            call(x)

    def same(places: list[baseline.Place]) -> bool:
        monkeypatch.setattr(baseline, "_same", really_same)
        threads.submit(other_call).result()
        return really_same(places)

    with torch.inference_mode():
        call(x)
        monkeypatch.setattr(baseline, "_same", same)
        assert torch.allclose(call(x), model(x))
    assert call._changed


def test_one_thread_at_a_time_compiles_with_freezing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads share Inductor's settings in older PyTorch, and here."""
    frozen = [False]

    @contextmanager
    def patch(**settings: bool) -> Iterator[None]:
        before, frozen[0] = frozen[0], True
        yield
        frozen[0] = before

    def compiled(function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
        def run(x: torch.Tensor) -> Any:
            time.sleep(0.05)
            return function(x)

        return run

    def first_call(call: Frozen) -> torch.Tensor:
        with torch.inference_mode():
            return call(torch.rand(2, 3))  # type: ignore[no-any-return]

    monkeypatch.setitem(vars(inductor), "patch", patch)
    monkeypatch.setattr(torch, "compile", compiled)
    calls = [Frozen(Keeps().eval(), False) for _ in range(2)]
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(first_call, [*calls, calls[0]]))
    assert not frozen[0]
    assert all(call._codes for call in calls)


def _inputs_of_compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of inputs of the graphs that are compiled from now on; frozen weights are none."""
    import torch._inductor.compile_fx as compiler

    given: list[int] = []
    really = compiler.compile_fx

    def compile_fx(graph: Any, inputs: Any, **options: Any) -> Any:
        given.append(len(inputs))
        return really(graph, inputs, **options)

    monkeypatch.setattr(compiler, "compile_fx", compile_fx)
    return given


@pytest.mark.slow
def test_the_weights_of_ten_modules_are_constants_of_their_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo runs a function as it is after eight compilations."""
    given = _inputs_of_compilations(monkeypatch)
    unit, x = FrozenUnit(lambda weight, x: torch.relu(x @ weight), 1, torch.relu, False), torch.rand(2, 3)
    layers = [torch.nn.Linear(3, 3).eval() for _ in range(10)]
    with torch.inference_mode():
        for layer in layers:
            assert torch.allclose(unit.of(layer)(layer.weight, x), torch.relu(x @ layer.weight))
    assert given == [1] * 10


@pytest.mark.slow
def test_code_of_both_modes_without_gradients_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    given = _inputs_of_compilations(monkeypatch)
    model, x = torch.nn.Linear(3, 3).eval(), torch.rand(2, 3)
    call = Frozen(model, False)
    for context in (torch.no_grad, torch.inference_mode, torch.no_grad, torch.inference_mode):
        with context():
            torch.testing.assert_close(call(x), model(x))
    assert given == [1, 1]
    with torch.no_grad():
        model.weight.mul_(2)
        torch.testing.assert_close(call(x), model(x))
    with torch.inference_mode():
        torch.testing.assert_close(call(x), model(x))
    assert given[2:] and all(inputs > 1 for inputs in given[2:])


@pytest.mark.slow
@pytest.mark.parametrize("gradients_first", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_frozen_code_does_not_run_after_a_change(change: str, gradients_first: bool) -> None:
    torch._dynamo.reset()
    model = Keeps().eval()
    call, x = Frozen(model, False), torch.rand(2, 3)
    if gradients_first:
        call(x)
    with torch.inference_mode():
        for _ in range(2):
            assert torch.allclose(call(x), model(x))
    with torch.no_grad():
        CHANGES[change](model)
    with torch.inference_mode():
        assert torch.allclose(call(x), model(x))


@pytest.mark.parametrize(
    "around",
    [
        lambda x: [x],
        lambda x: {"x": x},
        lambda x: UserDict(x=x),
        lambda x: MappingProxyType({"x": x}),
        lambda x: SimpleNamespace(inner=SimpleNamespace(x=x), n=1),
    ],
)
@pytest.mark.usefixtures("uncompiled")
def test_contiguous_tensors_are_looked_for_within_arguments(around: Callable[[torch.Tensor], Any]) -> None:
    contiguous = Contiguous(torch.nn.Identity())
    compiled: list[Any] = []
    contiguous._compiled = compiled.append
    contiguous(around(torch.ones(2, 3)))
    assert len(compiled) == 1
    turned = around(torch.ones(2, 3).t())
    assert contiguous(turned) is turned
    assert len(compiled) == 1


@pytest.mark.usefixtures("uncompiled")
def test_an_argument_that_contains_itself_runs_the_original() -> None:
    contiguous = Contiguous(torch.nn.Identity())
    contiguous._compiled = lambda _: None
    value = SimpleNamespace(x=torch.ones(2))
    value.itself = value
    assert contiguous(value) is value
