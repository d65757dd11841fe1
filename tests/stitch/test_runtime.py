"""The stitched forward runs for captured calls, gives the original's results, and otherwise steps aside."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

from agentforge.languages.cpp.shipped import agentforge_cpp
from agentforge.stitch.graph.printer import Unprintable
from agentforge.stitch.runtime.baseline import Frozen, FrozenUnit
from agentforge.stitch.runtime.kernel import (
    Kernel,
    beside_inputs,
    on_its_gpu,
    opaque_operator,
    provide_runtimes,
)
from agentforge.stitch.runtime.layout import Layout

from .making import BLOCK, TOWERS, Stitched, import_folder, rms_kernel, same, stitch_in_process

_WRITES = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, x, y):
        gate = torch.sigmoid(y) * 2
        x.add_(1.0)
        return self.norm(torch.tanh(gate + y)) * gate


def get_inputs():
    return [torch.randn(4, 16), torch.randn(4, 16)]


def get_init_inputs():
    return []
"""


def runs(stitched: Stitched) -> int:
    return sum(stitched.package.calls().values())


def both(stitched: Stitched) -> tuple[torch.nn.Module, torch.nn.Module]:
    """The original and an optimized copy of it."""
    original = stitched.model()
    return original, stitched.package.optimize(copy.deepcopy(original))


@pytest.fixture(params=["block", "cnn"])
def stitched(request: pytest.FixtureRequest) -> Stitched:
    made: Stitched = request.getfixturevalue(request.param)
    return made


def engaged(stitched: Stitched, model: torch.nn.Module, args: Any, kwargs: Any) -> tuple[Any, bool]:
    """Output of a call, and whether any kernel ran in it."""
    before = runs(stitched)
    with torch.no_grad():
        output = model(*args, **kwargs)
    return output, runs(stitched) > before


@pytest.mark.slow
def test_outputs_agree_and_every_kernel_runs(stitched: Stitched) -> None:
    original, optimized = both(stitched)
    before = stitched.package.calls()
    for seed in range(3):
        args, kwargs = stitched.inputs(seed)
        with torch.inference_mode():
            expected = original(*copy.deepcopy(args), **kwargs)
            assert same(optimized(*args, **kwargs), expected)
    after = stitched.package.calls()
    sites: dict[str, int] = {}
    for plan in stitched.plans:
        for call in plan["calls"].values():
            sites[call["kernel"]] = sites.get(call["kernel"], 0) + call["sites"]
    assert len(after) >= 3
    assert {name: after[name] - before.get(name, 0) for name in after} == {n: 3 * s for n, s in sites.items()}
    assert all(why == "it writes to seen in place" for why in stitched.refused.values())


def test_buffers_are_written_as_in_the_original(cnn: Stitched) -> None:
    original, optimized = both(cnn)
    args, _ = cnn.inputs(0)
    with torch.no_grad():
        for model in (original, optimized, optimized):
            model(*args)
    assert original.seen.item() == 1
    assert optimized.seen.item() == 2


def test_two_sites_of_one_region_share_a_kernel(block: Stitched) -> None:
    (plan,) = block.plans
    norms = [c for name, c in plan["calls"].items() if name.startswith("norm_")]
    assert [c["sites"] for c in norms] == [2]


def test_state_dict_isinstance_and_signature_stay(stitched: Stitched) -> None:
    original, optimized = both(stitched)
    assert optimized.state_dict().keys() == original.state_dict().keys()
    assert isinstance(optimized, type(original))
    assert [n for n, _ in optimized.named_modules()] == [n for n, _ in original.named_modules()]
    args, kwargs = stitched.inputs(0)
    engaged(stitched, optimized, args, kwargs)
    assert optimized.state_dict().keys() == original.state_dict().keys()


def test_arguments_may_be_passed_another_way(block: Stitched) -> None:
    original, optimized = both(block)
    _, kwargs = block.inputs(1)
    ids, scale, extra = kwargs["ids"], kwargs["scale"], kwargs["extra"]
    for _ in range(2):
        output, ran = engaged(block, optimized, (ids, scale), {"extra": extra})
        assert ran
        assert same(output, original(ids, scale, extra=extra))
    output, ran = engaged(block, optimized, (ids,), {"extra": extra})  # the default, which was not captured
    assert not ran
    assert same(output, original(ids, extra=extra))


def test_a_call_that_is_passed_another_way_is_known_too(
    towers: Stitched, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, optimized = both(towers)
    (a, b), _ = towers.inputs(0)
    calls: list[tuple[Any, dict[str, Any]]] = [((a, b), {}), ((a,), {"b": b}), ((), {"b": b, "a": a})]
    assert engaged(towers, optimized, *calls[-1])[1]

    def forbidden(*_: Any) -> None:
        raise AssertionError("the full checks run again")

    (unit,) = towers.package._ARTIFACT.units
    monkeypatch.setattr(unit.signature, "match", forbidden)
    for args, kwargs in calls:
        output, ran = engaged(towers, optimized, args, kwargs)
        assert ran
        assert same(output, original(a, b))


@pytest.mark.parametrize("change", ["scale", "shape", "no_extra", "dtype", "strides"])
def test_any_other_call_runs_the_original(block: Stitched, change: str) -> None:
    original, optimized = both(block)
    _, kwargs = block.inputs(2)
    if change == "scale":
        kwargs["scale"] = 3.0
    elif change == "shape":
        kwargs = {"ids": kwargs["ids"][:1], "scale": 2.0, "extra": kwargs["extra"][:1]}
    elif change == "no_extra":
        kwargs["extra"] = None
    elif change == "dtype":
        kwargs["extra"] = kwargs["extra"].double()
    else:
        kwargs["extra"] = kwargs["extra"].transpose(0, 1).contiguous().transpose(0, 1)
    output, ran = engaged(block, optimized, (), kwargs)
    assert not ran
    with torch.no_grad():
        assert same(output, original(**kwargs))


def test_weight_updates_take_effect(stitched: Stitched) -> None:
    original, optimized = both(stitched)
    args, kwargs = stitched.inputs(0)
    engaged(stitched, optimized, args, kwargs)
    with torch.no_grad():
        for parameter in original.parameters():
            parameter.mul_(1.1).add_(0.01)
    optimized.load_state_dict(original.state_dict())
    with torch.no_grad():
        expected = original(*copy.deepcopy(args), **kwargs)
    output, ran = engaged(stitched, optimized, args, kwargs)
    assert ran
    assert same(output, expected)
    with torch.no_grad():
        for model in (original, optimized):
            for parameter in model.parameters():
                parameter.data = parameter.data.clone() * 0.9
        expected = original(*copy.deepcopy(args), **kwargs)
    output, ran = engaged(stitched, optimized, args, kwargs)
    assert ran
    assert same(output, expected)


def test_tied_weights_stay_tied(block: Stitched) -> None:
    _, optimized = both(block)
    assert optimized.head.weight is optimized.embed.weight


def test_a_converted_model_runs_the_original(block: Stitched) -> None:
    _, optimized = both(block)
    args, kwargs = block.inputs(0)
    engaged(block, optimized, args, kwargs)
    optimized.bfloat16()
    output, ran = engaged(block, optimized, args, {**kwargs, "extra": kwargs["extra"].bfloat16()})
    assert not ran
    assert output["logits"].dtype == torch.bfloat16
    optimized.float()
    assert engaged(block, optimized, args, kwargs)[1]


def test_gradients_flow_through_the_original(block: Stitched) -> None:
    original, optimized = both(block)
    _, kwargs = block.inputs(0)
    before = runs(block)
    with pytest.warns(UserWarning, match="inference"):
        optimized(**kwargs)["logits"].sum().backward()
    original(**kwargs)["logits"].sum().backward()
    assert runs(block) == before
    for ours, theirs in zip(optimized.parameters(), original.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None)
        assert ours.grad is None or torch.allclose(ours.grad, theirs.grad)
    assert optimized.head.weight.grad is not None
    for parameter in optimized.parameters():
        parameter.requires_grad_(False)
    optimized(**kwargs)
    assert runs(block) > before


def test_training_hooks_and_replaced_parts_run_the_original(block: Stitched) -> None:
    _, optimized = both(block)
    args, kwargs = block.inputs(0)
    optimized.train()
    assert not engaged(block, optimized, args, kwargs)[1]
    optimized.eval()
    assert engaged(block, optimized, args, kwargs)[1]
    seen: list[str] = []
    handle = optimized.norms[0].register_forward_hook(lambda *_: seen.append("inner"))
    assert not engaged(block, optimized, args, kwargs)[1]
    assert seen == ["inner"]
    handle.remove()
    outer = optimized.register_forward_hook(lambda *_: seen.append("outer"))
    assert engaged(block, optimized, args, kwargs)[1]
    assert seen == ["inner", "outer"]
    outer.remove()
    optimized.down = torch.nn.Sequential(optimized.down)
    assert not engaged(block, optimized, args, kwargs)[1]


def test_autocast_runs_the_original(block: Stitched) -> None:
    original, optimized = both(block)
    args, kwargs = block.inputs(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, ran = engaged(block, optimized, args, kwargs)
        with torch.no_grad():
            expected = original(*args, **kwargs)
    assert not ran
    assert same(output, expected)


def test_deep_copies_are_optimized_and_independent(stitched: Stitched) -> None:
    original, optimized = both(stitched)
    args, kwargs = stitched.inputs(0)
    engaged(stitched, optimized, args, kwargs)
    twin = copy.deepcopy(optimized)
    with torch.no_grad():
        next(twin.parameters()).zero_()
        expected = original(*copy.deepcopy(args), **kwargs)
    assert engaged(stitched, twin, copy.deepcopy(args), kwargs)[1]
    output, ran = engaged(stitched, optimized, args, kwargs)
    assert ran
    assert same(output, expected)


def test_a_pickled_model_loads_as_the_original(block: Stitched, monkeypatch: pytest.MonkeyPatch) -> None:
    original, optimized = both(block)
    # Another test may have loaded the same source again, and pickle looks classes up by name.
    module = sys.modules[type(original).__module__]
    for kind in {type(part) for part in original.modules()}:
        if kind.__module__ == module.__name__:
            monkeypatch.setattr(module, kind.__name__, kind)
    loaded = pickle.loads(pickle.dumps(optimized))
    assert type(loaded) is type(original)
    assert loaded.state_dict().keys() == original.state_dict().keys()
    args, kwargs = block.inputs(0)
    output, ran = engaged(block, loaded, args, kwargs)
    assert not ran
    assert same(output, original(*args, **kwargs))


def test_a_class_says_itself_what_is_copied_and_pickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _WRITES.replace(
        "    def forward(",
        """        self.lock = threading.Lock()

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self.lock = threading.Lock()

    def forward(""",
    ).replace("import torch\n", "import threading\n\nimport torch\n", 1)
    stitched = stitch_in_process(source, tmp_path)
    original, optimized = both(stitched)
    monkeypatch.setitem(sys.modules, type(original).__module__, stitched.problem.module)
    for made in (copy.deepcopy(optimized), pickle.loads(pickle.dumps(optimized))):
        assert made.lock is not optimized.lock
        assert isinstance(made, type(original))
    twin = copy.deepcopy(optimized)
    assert type(twin) is type(optimized)
    args, kwargs = stitched.inputs(0)
    assert engaged(stitched, twin, args, kwargs)[1]


def test_a_call_like_an_earlier_one_still_notices_every_change(towers: Stitched) -> None:
    """The second call of a kind takes the short way, so each change is made after one that did."""
    _, optimized = both(towers)
    args, _ = towers.inputs(0)
    part = optimized.left[0]
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            assert all(engaged(towers, optimized, args, {})[1] for _ in range(3))

    def runs_kernels(*given: torch.Tensor) -> bool:
        ran: bool = engaged(towers, optimized, given or args, {})[1]
        return ran

    part.double()
    with pytest.raises(RuntimeError, match="dtype"):  # as the original, which gets float32
        runs_kernels()
    part.float()
    assert runs_kernels()
    handle = part.register_forward_hook(lambda *_: None)
    assert not runs_kernels()
    handle.remove()
    part.train()  # nothing there reads it
    assert runs_kernels()
    part.eval()
    assert not runs_kernels(args[0][:2], args[1][:2])
    assert runs_kernels()
    with torch.autocast("cpu"):
        assert not runs_kernels()


def test_added_parts_run_the_original(block: Stitched, towers: Stitched) -> None:
    for stitched, add in (
        (towers, lambda model: model.left.append(torch.nn.ReLU())),
        (towers, lambda model: setattr(model.left, "extra", torch.nn.ReLU())),
        (towers, lambda model: setattr(model.gate, "bias", None)),
        (block, lambda model: setattr(model.qkv, "bias", torch.nn.Parameter(torch.ones(96)))),
        (block, lambda model: setattr(model.down, "bias", None)),
    ):
        original, optimized = both(stitched)
        args, kwargs = stitched.inputs(0)
        with torch.no_grad():
            assert all(engaged(stitched, optimized, args, kwargs)[1] for _ in range(2))
            add(original)
            add(optimized)
            output, ran = engaged(stitched, optimized, args, kwargs)
            assert not ran
            assert same(output, original(*args, **kwargs))


def test_a_model_with_other_parts_or_settings_is_refused(block: Stitched, cnn: Stitched) -> None:
    for stitched, change, said in (
        (block, lambda m: m.norms.append(torch.nn.ReLU()), "'norms' has the submodules 0, 1, 2, not .* 0, 1"),
        (block, lambda m: setattr(m.down, "bias", None), "'down' has the parameters weight, not .*, bias"),
        (cnn, lambda m: setattr(m.n, "eps", 0.1), "eps of its submodule 'n' is 0.1, not the captured 1e-05"),
    ):
        model = stitched.model()
        change(model)
        with pytest.raises(ValueError, match=said):
            stitched.package.optimize(model)


_PADDED = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 1)

    def forward(self, x, padding):
        return self.encoder(x, src_key_padding_mask=padding)


def get_inputs():
    return [torch.randn(2, 6, 16), torch.arange(12).view(2, 6) == 8]


def get_init_inputs():
    return []
"""


@pytest.mark.slow
def test_padding_at_the_end_of_rows_runs_the_original(tmp_path: Path) -> None:
    stitched = stitch_in_process(_PADDED, tmp_path)
    original, optimized = both(stitched)
    (x, hole), _ = stitched.inputs(0)
    last = torch.arange(6) >= torch.tensor([[6], [4]])
    for padding, runs_kernels in ((hole, True), (last, False), (hole, True), (last, False)):
        output, ran = engaged(stitched, optimized, (x, padding), {})
        with torch.no_grad():
            torch.testing.assert_close(output, original(x, padding))
        assert bool(ran) is runs_kernels


def test_inputs_that_share_memory_run_the_original_if_one_is_written(tmp_path: Path) -> None:
    stitched = stitch_in_process(_WRITES, tmp_path)
    original, optimized = both(stitched)
    (x, y), _ = stitched.inputs(0)
    assert not stitched.plans[0]["replayable"]
    for known in (False, True):
        for shared in (lambda x: (x, x), lambda x: (x, x.view(4, 16)), lambda x: (x[:4], x[:4])):
            output, ran = engaged(stitched, optimized, shared(x.clone()), {})
            with torch.no_grad():
                assert same(output, original(*shared(x.clone())))
            assert not ran
        assert engaged(stitched, optimized, (x.clone(), y), {})[1], known


def test_an_input_that_shares_memory_with_a_written_buffer_runs_the_original(tmp_path: Path) -> None:
    register = '        self.register_buffer("cache", torch.zeros(4, 16))\n'
    source = _WRITES.replace("x.add_(1.0)", "self.cache.add_(1.0)")
    source = source.replace("        self.norm =", f"{register}        self.norm =")
    stitched = stitch_in_process(source, tmp_path)
    original, optimized = both(stitched)
    (x, y), _ = stitched.inputs(0)
    (plan,) = stitched.plans
    assert plan["replayable"] and [plan["tensors"][n]["name"] for n in plan["written"]] == ["cache"]
    for _known in (False, True):
        for given, runs_kernels in (
            (lambda model: (x, y), True),
            (lambda model: (x, x), True),  # neither is written
            (lambda model: (x, model.cache), False),
            (lambda model: (x, model.cache.view(-1).view(4, 16)), False),
        ):
            output, ran = engaged(stitched, optimized, given(optimized), {})
            with torch.no_grad():
                assert same(output, original(*given(original)))
            assert ran == runs_kernels
    assert torch.equal(optimized.cache, original.cache)


def test_an_input_that_shares_memory_with_a_written_buffer_is_not_traced(tmp_path: Path) -> None:
    """A trace does not show whether it does."""
    register = '        self.register_buffer("seen", torch.zeros(4, 16))\n'
    source = TOWERS.replace("        x = self.left", "        self.seen += 1\n        x = self.left")
    source = source.replace("        self.left,", f"{register}        self.left,")
    stitched = stitch_in_process(source, tmp_path)
    original, optimized = both(stitched)
    args, _ = stitched.inputs(0)
    before = runs(stitched)
    with torch.no_grad():
        program = torch.export.export(optimized, args, strict=False)
        assert same(program.module()(*args), original(*args))
    assert runs(stitched) == before
    assert engaged(stitched, optimized, args, {})[1]


def test_a_weight_that_became_sparse_runs_the_original(towers: Stitched) -> None:
    original, optimized = both(towers)
    args, _ = towers.inputs(0)
    for known in (False, True):
        if known:
            assert engaged(towers, optimized, args, {})[1]
        dense = optimized.gate.weight
        for model in (original, optimized):
            model.gate.weight = torch.nn.Parameter(model.gate.weight.detach().to_sparse_csr())
        output, ran = engaged(towers, optimized, args, {})
        with torch.no_grad():
            assert same(output, original(*args))
        assert not ran
        for model in (original, optimized):
            model.gate.weight = dense


def test_jit_trace_records_the_original(towers: Stitched) -> None:
    original, optimized = both(towers)
    args, _ = towers.inputs(0)
    with torch.no_grad():
        optimized(*args)
        traced = torch.jit.trace(optimized, args)
        assert same(traced(*args), original(*args))


@pytest.mark.parametrize("transform", ["jvp", "dual", "vmap", "make_fx", "make_fx before dispatch", "fake"])
@pytest.mark.parametrize("known", [True, False])
def test_transforms_see_the_original(towers: Stitched, transform: str, known: bool) -> None:
    original, optimized = both(towers)
    (x, y), _ = towers.inputs(0)
    for model in (original, optimized):
        model.requires_grad_(False)

    def transformed(model: torch.nn.Module) -> Any:
        match transform:
            case "jvp":
                return torch.func.jvp(lambda x: model(x, y), (x,), (y,))
            case "dual":
                with forward_ad.dual_level():
                    dual = model(forward_ad.make_dual(x, y), y)[0]
                    return tuple(forward_ad.unpack_dual(dual))
            case "vmap":
                return torch.vmap(model, in_dims=(0, None))(torch.stack([x, y]), y)
            case "fake":
                with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                    return tuple(model(mode.from_tensor(x), mode.from_tensor(y))[0].shape)
            case _:
                return make_fx(model, pre_dispatch="before" in transform)(x, y)(y, x)

    with torch.no_grad():
        if known:
            optimized(x, y)
        before = runs(towers)
        assert same(transformed(optimized), transformed(original))
        assert runs(towers) == before
        assert engaged(towers, optimized, (x, y), {})[1]


def test_kernels_run_while_another_thread_compiles(towers: Stitched, monkeypatch: pytest.MonkeyPatch) -> None:
    original, optimized = both(towers)
    args, kwargs = towers.inputs(0)
    with torch.no_grad():
        expected = original(*args, **kwargs)
    monkeypatch.setattr(torch.compiler, "_is_compiling_flag", True)  # as Dynamo sets it, for all threads
    for _ in range(2):
        output, ran = engaged(towers, optimized, args, kwargs)
        assert ran and same(output, expected)
    with pytest.warns(UserWarning, match="gradients are enabled"):
        optimized(*args, **kwargs)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_export_has_the_kernels_in_its_graph(towers: Stitched, context: Any) -> None:
    original, optimized = both(towers)
    args, _ = towers.inputs(0)
    with context():
        program = torch.export.export(optimized, args, strict=False)
        targets = [str(node.target) for node in program.graph.nodes]
        assert any(target.startswith(f"agentforge_{towers.package._ARTIFACT.id}") for target in targets)
        assert same(program.module()(*args), original(*args))


def test_a_dynamic_size_traces_the_original(towers: Stitched) -> None:
    original, optimized = both(towers)
    args, _ = towers.inputs(0)
    more = [torch.cat([x, x]) for x in args]
    rows = {0: torch.export.Dim("rows", min=2, max=64)}
    before = runs(towers)
    with torch.no_grad():
        for strict in (False, True):
            program = torch.export.export(optimized, args, dynamic_shapes=(rows, rows), strict=strict)
            assert same(program.module()(*more), original(*more))
        for x in args:
            torch._dynamo.mark_dynamic(x, 0)
        compiled = torch.compile(optimized, fullgraph=True, backend="eager")
        for given in (args, more):
            assert same(compiled(*given), original(*given))
    assert runs(towers) == before


def test_a_kept_baseline_has_no_layer_around_it(towers: Stitched, tmp_path: Path) -> None:
    kept = stitch_in_process(TOWERS, tmp_path, "compile")
    model = kept.model()
    optimized = kept.package.optimize(model)
    assert optimized is model
    assert type(optimized).forward is type(kept.model()).forward
    assert optimized._compiled_call_impl is not None
    compiled = optimized._compiled_call_impl
    assert kept.package.optimize(optimized)._compiled_call_impl is compiled
    assert kept.package.restore(optimized)._compiled_call_impl is None
    with pytest.raises(ValueError, match="another model"):
        kept.package.optimize(torch.nn.Linear(2, 2))


def test_a_baseline_for_contiguous_inputs_runs_the_original_for_others(
    towers: Stitched, tmp_path: Path
) -> None:
    kept = stitch_in_process(TOWERS, tmp_path, "compile+contiguous")
    optimized = kept.package.optimize(kept.model())
    original = kept.model()
    args, kwargs = kept.inputs(1)
    call = optimized._compiled_call_impl
    seen: list[str] = []
    call._compiled = lambda *args, **kwargs: seen.append("compiled") or original(*args, **kwargs)
    turned = [x.mT.contiguous().mT for x in args]
    with torch.inference_mode():
        assert same(optimized(*args, **kwargs), original(*args, **kwargs))
        assert seen == ["compiled"]
        assert same(optimized(*turned, **kwargs), original(*args, **kwargs))
        assert seen == ["compiled"]
    assert kept.package.restore(optimized)._compiled_call_impl is None


@pytest.mark.slow
@pytest.mark.parametrize("write", ["one element", "a swap", "another parameter"])
def test_a_kept_frozen_baseline_notices_each_change_of_its_weights(
    towers: Stitched, tmp_path: Path, write: str
) -> None:
    kept = stitch_in_process(TOWERS, tmp_path, "compile+freezing")
    optimized = kept.package.optimize(kept.model())
    assert type(optimized) is type(kept.model())
    original = kept.model()
    args, kwargs = kept.inputs(1)
    with torch.inference_mode():
        assert same(optimized(*args, **kwargs), original(*args, **kwargs))
        call = optimized._compiled_call_impl
        assert call._codes
        original.up.weight[0, 0] += 3.0
    if write == "one element":
        optimized.up.weight.data[0, 0] += 3.0
    elif write == "a swap":
        optimized.up.weight.data = original.up.weight.data.clone()
    else:
        optimized.up.weight = torch.nn.Parameter(original.up.weight.detach().clone())
    with torch.inference_mode():
        assert same(optimized(*args, **kwargs), original(*args, **kwargs))
    optimized(*args, **kwargs)[0].sum().backward()
    assert optimized.up.weight.grad is not None
    assert kept.package.restore(optimized)._compiled_call_impl is None


@pytest.mark.slow
@pytest.mark.parametrize("write", ["one element", "another parameter"])
def test_a_unit_with_frozen_weights_notices_each_change_of_them(
    block: Stitched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    folder = shutil.copytree(block.folder, tmp_path / "frozen")
    plan = json.loads((folder / "plan.json").read_text())
    units = [{**unit, "compiled": "freezing"} for unit in plan["units"]]
    (folder / "plan.json").write_text(json.dumps({**plan, "id": "frozen", "units": units}))
    package = import_folder(folder)
    original, optimized = block.model(), package.optimize(block.model())
    args, kwargs = block.inputs(1)
    runtime: Any = sys.modules[type(package._ARTIFACT.units[0].frozen).__module__]
    frozen: list[bool] = []
    really = runtime.Frozen._compile

    def compile_(call: Any, *given: Any) -> Any:
        result = really(call, *given)
        frozen.append(bool(call._codes))
        return result

    monkeypatch.setattr(runtime.Frozen, "_compile", compile_)
    before = dict(package.calls())
    with torch.inference_mode():
        for _ in range(2):
            assert same(optimized(*args, **kwargs), original(*args, **kwargs))
    assert frozen and all(frozen)
    assert all(count > before[name] for name, count in package.calls().items())
    with torch.no_grad():
        original.up.weight[0, 0] += 3.0
    if write == "one element":
        optimized.up.weight.data[0, 0] += 3.0
    else:
        optimized.up.weight = torch.nn.Parameter(original.up.weight.detach().clone())
    with torch.inference_mode():
        assert same(optimized(*args, **kwargs), original(*args, **kwargs))
    package.restore(optimized)


@pytest.mark.parametrize("end", ["restore", "another artifact"])
def test_the_frozen_code_of_all_units_of_a_module_is_freed(block: Stitched, tmp_path: Path, end: str) -> None:
    folder = shutil.copytree(block.folder, tmp_path / "two")
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "id": f"two{len(end)}"}))
    artifact = import_folder(folder)._ARTIFACT
    artifact._load()
    artifact.units.append(copy.copy(artifact.units[0]))  # as for a second signature
    for unit in artifact.units:
        unit.frozen = FrozenUnit(unit.traceable, len(unit.tensors), unit.eager, False)
    model = artifact.optimize(block.model())
    for unit in artifact.units:
        unit.frozen.of(model)
    if end == "restore":
        artifact.restore(model)
        assert type(model) is type(block.model())
    else:
        block.package.optimize(model)
    assert [len(unit.frozen._calls) for unit in artifact.units] == [0, 0]


def test_optimize_twice_and_restore(block: Stitched) -> None:
    original, optimized = both(block)
    swapped = type(optimized)
    assert type(block.package.optimize(optimized)) is swapped
    block.package.restore(optimized)
    assert type(optimized) is type(original)
    args, kwargs = block.inputs(0)
    assert not engaged(block, optimized, args, kwargs)[1]


def test_kernels_of_another_artifact_give_way(block: Stitched, tmp_path: Path) -> None:
    other = stitch_in_process(BLOCK, tmp_path, choose=rms_kernel)
    model = block.package.optimize(block.model())
    args, kwargs = block.inputs(0)
    for latest, earlier in ((other, block), (block, other)):
        assert latest.package.optimize(model) is model
        before = runs(earlier)
        assert engaged(latest, model, args, kwargs)[1]
        assert runs(earlier) == before
    stitched = type(model)
    model.down = torch.nn.Identity()
    with pytest.raises(ValueError, match="another model"):
        other.package.optimize(model)
    assert type(model) is stitched


def test_a_kept_baseline_replaces_another_artifact_s_kernels(towers: Stitched, tmp_path: Path) -> None:
    model = towers.package.optimize(towers.model())
    for mode in ("compile", "eager"):
        kept = stitch_in_process(TOWERS, tmp_path / mode, mode)
        optimized = kept.package.optimize(copy.deepcopy(model))
        assert type(optimized) is type(towers.model())


def test_a_compiled_model_is_refused(towers: Stitched, tmp_path: Path) -> None:
    kept = stitch_in_process(TOWERS, tmp_path, "compile")
    for artifact in (towers, kept):
        model = artifact.model()
        model.compile()
        with pytest.raises(ValueError, match=r"Module\.compile was called"):
            artifact.package.optimize(model)


@pytest.mark.parametrize("part", ["", "left.0"])
def test_a_forward_on_an_instance_is_refused(towers: Stitched, tmp_path: Path, part: str) -> None:
    model = towers.model()
    module = model.get_submodule(part)
    module.forward = module.forward  # what accelerate's hooks do
    with pytest.raises(ValueError, match="would not run: pass the model as it was before"):
        towers.package.optimize(model)
    kept = stitch_in_process(TOWERS, tmp_path, "compile")
    assert kept.package.optimize(model)._compiled_call_impl
    del module.forward
    kept.package.restore(model)
    assert type(towers.package.optimize(model))._agentforge_unit


def test_another_model_is_refused(block: Stitched, cnn: Stitched) -> None:
    with pytest.raises(ValueError, match="another model"):
        block.package.optimize(cnn.model())
    changed = block.model()
    changed.down = torch.nn.Identity()
    with pytest.raises(ValueError, match="another model"):
        block.package.optimize(changed)


@pytest.mark.parametrize(
    ("given", "said"), [("x", "not 'x'"), (None, "not None"), (torch.nn.Linear, "not the class Linear")]
)
def test_what_is_no_model_is_refused(block: Stitched, given: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        block.package.optimize(given)


@pytest.mark.slow
def test_torch_compile_over_it_sees_one_graph(block: Stitched) -> None:
    original, optimized = both(block)
    args, kwargs = block.inputs(0)
    compiled = torch.compile(optimized, fullgraph=True, backend="aot_eager")
    output, ran = engaged(block, compiled, args, kwargs)
    assert ran
    with torch.no_grad():
        assert same(output, original(*args, **kwargs))
    torch._dynamo.reset()  # compiled code does not look out for hooks that are added later
    handle = optimized.down.register_forward_hook(lambda module, args, output: output * 0)
    output, ran = engaged(block, torch.compile(optimized, backend="aot_eager"), args, kwargs)
    handle.remove()
    assert not ran


def test_a_weight_of_another_layout_runs_the_original(block: Stitched) -> None:
    original, optimized = both(block)
    args, kwargs = block.inputs(0)
    assert engaged(block, optimized, args, kwargs)[1]
    weight = optimized.up.weight
    weight.data = weight.data.t().contiguous().t()
    output, ran = engaged(block, optimized, args, kwargs)
    assert not ran
    assert same(output, original(*args, **kwargs))


def test_weight_norm_s_own_hooks_are_part_of_the_graph(tmp_path: Path) -> None:
    source = BLOCK.replace("nn.Linear(width, 2 * width)", "nn.utils.weight_norm(nn.Linear(width, 2 * width))")
    stitched = stitch_in_process(source, tmp_path)
    original, optimized = stitched.model(), stitched.package.optimize(stitched.model())
    args, kwargs = stitched.inputs(0)
    output, ran = engaged(stitched, optimized, args, kwargs)
    assert ran
    assert same(output, original(*args, **kwargs))


KEPT = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.scales, self.shifts = [torch.rand(8)], {"a": torch.rand(8)}

    def forward(self, x):
        return torch.tanh(self.norm(x)) * self.scales[0] + self.shifts["a"] + torch.tensor(2.0)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""


def test_tensors_in_containers_are_read_at_each_call(tmp_path: Path) -> None:
    stitched = stitch_in_process(KEPT, tmp_path)
    torch.manual_seed(7)
    original = stitched.problem.model_class().eval()  # with other tensors than the captured model
    optimized = stitched.package.optimize(copy.deepcopy(original))
    args, kwargs = stitched.inputs(0)
    output, ran = engaged(stitched, optimized, args, kwargs)
    assert ran
    assert same(output, original(*args, **kwargs))
    for model in (original, optimized):
        model.scales[0].mul_(3)
        model.shifts["a"] = torch.full((8,), 5.0)
    assert same(engaged(stitched, optimized, args, kwargs)[0], original(*args, **kwargs))
    optimized.scales = original.scales = (torch.ones(4, 8),)
    assert same(engaged(stitched, optimized, args, kwargs)[0], original(*args, **kwargs))
    optimized.scales = None
    with pytest.raises(TypeError, match="not subscriptable") as raised:
        engaged(stitched, optimized, args, kwargs)
    assert raised.traceback[-1].name == "forward"  # the original, not the checks


def test_a_hook_of_the_users_on_the_model_itself_is_not_stitched(tmp_path: Path) -> None:
    """The graph has it, and each call of the model would run it again."""
    hooked = KEPT.replace(
        "self.norm = nn", "self.register_forward_hook(lambda model, args, output: output * 2); self.norm = nn"
    )
    with pytest.raises(Unprintable, match="a forward hook on a Model"):
        stitch_in_process(hooked, tmp_path)


FILLED = """
import functools

import torch
import torch.nn as nn


@functools.lru_cache
def positions(n):
    return torch.arange(n).float()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.masks, self.cos = nn.LayerNorm(8), {}, None

    def forward(self, x):
        if len(x) not in self.masks:
            self.masks[len(x)] = torch.ones(len(x), 8).tril()
        if self.cos is None:
            self.cos = torch.cos(torch.arange(8).float())
        return torch.tanh(self.norm(x) * self.masks[len(x)] + self.cos) + positions(8)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""


def test_tensors_that_the_first_call_keeps_are_made_by_the_original(tmp_path: Path) -> None:
    stitched = stitch_in_process(FILLED, tmp_path)
    assert [plan["path"] for plan in stitched.plans] == [""]
    original, optimized = both(stitched)
    args, kwargs = stitched.inputs(0)
    first, later = (engaged(stitched, optimized, args, kwargs) for _ in range(2))
    assert (first[1], later[1]) == (False, True)
    assert same(first[0], original(*args, **kwargs))
    assert same(later[0], original(*args, **kwargs))


def test_a_tensor_deep_within_an_attribute_is_not_frozen(tmp_path: Path) -> None:
    source = KEPT.replace("[torch.rand(8)]", "[(torch.rand(8),)]").replace("scales[0]", "scales[0][0]")
    with pytest.raises(Unprintable, match="deep within the attribute scales of a Model"):
        stitch_in_process(source, tmp_path)


def test_a_named_tuple_of_the_users_comes_out(tmp_path: Path) -> None:
    source = (
        KEPT.replace("import torch.nn as nn", "import torch.nn as nn\nfrom typing import NamedTuple")
        + """
class Out(NamedTuple):
    values: list
    total: torch.Tensor

_forward = Model.forward
Model.forward = lambda self, x: (lambda y: Out([y], y.sum()))(_forward(self, x))
"""
    )
    stitched = stitch_in_process(source, tmp_path)
    original, optimized = both(stitched)
    args, kwargs = stitched.inputs(0)
    engaged(stitched, optimized, args, kwargs)  # the original's output shows the class
    for _ in range(2):
        output, ran = engaged(stitched, optimized, args, kwargs)
        assert ran
        assert type(output) is stitched.problem.module.Out
        assert same(output, original(*args, **kwargs))


def test_a_forward_runs_with_its_tensors_gpu_current(monkeypatch: pytest.MonkeyPatch) -> None:
    current, seen = [0], []

    @contextmanager
    def device(index: int) -> Iterator[None]:
        before, current[0] = current[0], index
        yield
        current[0] = before

    def on(index: int) -> Any:
        return SimpleNamespace(is_cuda=True, get_device=lambda: index)

    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[0])
    monkeypatch.setattr(torch.cuda, "device", device)
    run = on_its_gpu(lambda *_: seen.append(current[0]))
    run(torch.ones(1))
    run(on(0))
    run(torch.ones(1), on(1))
    assert seen == [0, 0, 1] and current == [0]


def test_constants_move_to_the_gpu_of_the_inputs() -> None:
    def on(index: int) -> Any:
        return SimpleNamespace(is_cuda=index >= 0, get_device=lambda: index, to=lambda place: (index, place))

    weight, constant, small, given = on(1), on(0), on(-1), on(1)
    run = beside_inputs(lambda *tensors: tensors, 1, [constant, small])
    assert run(weight, constant, small, given) == (weight, (0, "cuda:1"), small, given)
    assert run(small, constant, small, small) == (small, constant, small, small)


def test_a_frozen_baseline_freezes_though_its_first_call_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.config as inductor

    frozen: list[bool] = []

    def compiled(function: Any, **_: Any) -> Any:
        def run(*args: Any) -> Any:
            frozen.append(inductor.freezing)
            return function(*args)

        return run

    monkeypatch.setattr(torch, "compile", compiled)
    call = Frozen(torch.nn.Linear(3, 2).eval(), False)
    with torch.inference_mode():
        with pytest.raises(RuntimeError):
            call(torch.ones(1, 5))
        for _ in range(2):
            assert call(torch.ones(1, 3)).shape == (1, 2)
    assert frozen == [True, True, False]


def test_runtimes_of_two_versions_in_a_process_get_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "agentforge_cpp", agentforge_cpp)
    copied = tmp_path / "agentforge_cpp.py"
    shutil.copyfile(str(agentforge_cpp.__file__), copied)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert provide_runtimes(tmp_path) is agentforge_cpp
    copied.write_text(copied.read_text() + "\n")
    with pytest.warns(UserWarning, match=r"another version of AgentForge .*agentforge_cpp\.py differs"):
        provide_runtimes(tmp_path)


def test_the_plan_of_an_earlier_version_runs(towers: Stitched, tmp_path: Path) -> None:
    folder = shutil.copytree(towers.folder, tmp_path / "earlier")
    plan = json.loads((folder / "plan.json").read_text())
    plan["id"] = "earlier"
    for unit in plan["units"]:
        for entry in (unit, *unit["modules"]):
            del entry["code"], entry["values"]
        for key in ("tied", "lengths", "written", "branches"):
            del unit[key]
    (folder / "plan.json").write_text(json.dumps(plan))
    package = import_folder(folder)
    optimized = package.optimize(towers.model())
    args, kwargs = towers.inputs(0)
    with torch.no_grad():
        assert same(optimized(*args, **kwargs), towers.model()(*args, **kwargs))
    assert sum(package.calls().values()) > 0


_PLACES = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return torch.tensor([x.data_ptr() % 16, y.data_ptr() % 16]), x + y
"""


@pytest.mark.parametrize(
    ("language", "author", "place"),
    [("cuda", "a model", 0), ("cupy", "a model", 0), ("cuda", "playbook", 4), ("triton", "a model", 4)],
)
def test_a_slice_is_copied_for_kernels_that_may_need_aligned_inputs(
    language: str, author: str, place: int, tmp_path: Path
) -> None:
    (tmp_path / "model_new.py").write_text(_PLACES)
    (tmp_path / "solution.json").write_text(json.dumps({"language": language, "author": author}))
    kernel = Kernel(tmp_path, "model_new.py::ModelNew", f"places_{language}_{place}", lambda _: None)
    layouts = [Layout((2,), (1,), torch.int64, "cpu"), Layout((3, 4), (4, 1), torch.float32, "cpu")]
    memory = torch.arange(64.0)
    x, y = memory[1:13].view(3, 4), memory[17:20].unsqueeze(1).expand(3, 4)
    places, total = kernel.at(layouts, is_tuple=True)(x, y)
    assert places.tolist() == [place, place]
    assert torch.equal(total, x + y)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_parameter_reaches_a_kernel_by_dlpack(tmp_path: Path, compiled: bool) -> None:
    """DLPack refuses tensors that require a gradient, also under `no_grad`."""
    folder = tmp_path / "scaled"
    folder.mkdir()
    (folder / "model_new.py").write_text(
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n"
        "    def forward(self, x, weight):\n        return x * torch.from_dlpack(weight)\n"
    )
    kernel = Kernel(folder, "model_new.py::ModelNew", f"dlpack_{compiled}", lambda _: None)
    layouts = [Layout((3,), (1,), torch.float32, "cpu")]
    call = kernel.at(layouts, False)
    if compiled:
        call = opaque_operator("kernel_test::dlpack", call, 2, layouts, False)
    weight = torch.nn.Parameter(torch.full((3,), 2.0))
    with torch.no_grad():
        assert call(torch.ones(3), weight).tolist() == [2.0, 2.0, 2.0]
    assert weight.requires_grad and kernel.runs == 1
