"""A live module travels with its structure, its weights and its training modes, and is not changed."""

from __future__ import annotations

import base64
import copy
import os
import resource
import signal
import subprocess
import sys
import threading
from collections import OrderedDict, UserDict
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from torch import nn
from torch.nn import utils
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm
from torch.nn.utils.parametrize import is_parametrized
from torch.nn.utils.prune import l1_unstructured
from torch.utils._pytree import tree_leaves

from agentforge.api._live_source import SOURCE
from agentforge.api.artifact import load
from agentforge.api.live_model import MOST_STRUCTURE_BYTES, _keep, check, draw_inputs, live_target, structure
from agentforge.api.result import Result
from agentforge.api.targets import as_target, live_module, load_settings, where_of
from agentforge.problems.kernelbench import Problem, import_source, load_problem
from agentforge.problems.live_weights import check_weights
from agentforge.schema import Definition, MachineError, TargetError, UsageError
from agentforge.stitch.artifact import write_artifact
from agentforge.stitch.sources import local_modules
from tests.stitch.making import stitch_in_process
from tests.stitch.test_artifact import report


class Marked(torch.Tensor):
    """A tensor with a meaning, as those of images are."""


class Point(NamedTuple):
    x: torch.Tensor


def rebuilt(model: nn.Module, inputs: Any, folder: Path) -> tuple[nn.Module, Problem, Definition]:
    """The module as another process builds it."""
    definition = live_target(model, inputs, "cpu", folder).definition
    problem = load_problem(definition)
    return problem.build(seed=0), problem, definition


@pytest.mark.slow
def test_a_class_that_can_be_imported_goes_by_its_path(nets: ModuleType, tmp_path: Path) -> None:
    model = nets.Net().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    before, x = copy.deepcopy(model.state_dict()), torch.randn(4, 16)
    twin, problem, definition = rebuilt(model, (x,), tmp_path)
    assert isinstance(twin, nets.Net)
    assert type(twin).__qualname__ == "Net"
    assert definition.import_root == str(tmp_path / "project")
    assert {"my_nets.py", "my_layers.py"} == set(local_modules(definition.reference, tmp_path / "project"))
    assert twin.second.weight is twin.first.weight
    assert twin.state_dict().keys() == before.keys()
    assert all(torch.equal(value, before[key]) for key, value in twin.state_dict().items())
    assert torch.equal(twin(x), model(x))
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    (drawn,), keywords = problem.inputs(seed=3)
    assert (drawn.shape, drawn.dtype, keywords) == (x.shape, x.dtype, {})
    assert not torch.equal(drawn, x)


def test_without_the_file_of_weights_they_are_drawn(nets: ModuleType, tmp_path: Path) -> None:
    model = nets.Net().eval()
    definition = live_target(model, (torch.randn(4, 16),), "cpu", tmp_path).definition
    (weights,) = (tmp_path / "live").iterdir()
    assert weights.stat().st_mode & 0o077 == 0
    weights.unlink()
    built = load_problem(definition).build(seed=0)
    assert not torch.equal(built.first.weight, model.first.weight)
    built.load_state_dict(model.state_dict())
    x = torch.randn(4, 16)
    assert torch.equal(built(x), model(x))


def test_a_run_whose_weights_are_gone_is_refused(
    nets: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = live_target(nets.Net().eval(), (torch.randn(4, 16),), "cpu", tmp_path)
    check_weights(target)
    (weights,) = (tmp_path / "live").iterdir()
    weights.unlink()
    with pytest.raises(UsageError, match=rf"{weights} cannot be read: give the model again"):
        check_weights(target)
    monkeypatch.setattr("agentforge.api.result.load", lambda folder: folder)
    result = object.__new__(Result)
    result.artifact, result._target, result._module = tmp_path, target, None
    with pytest.raises(UsageError, match="give the model again"):
        _ = result.model


def test_weights_that_are_there_become_new(tmp_path: Path) -> None:
    values = {"weight": torch.randn(4)}
    path = _keep(values, tmp_path)
    os.utime(path, (0, 0))
    assert _keep(values, tmp_path) == path
    assert path.stat().st_mtime > 0


def test_a_weight_lies_in_memory_as_the_module_has_it(tmp_path: Path) -> None:
    model = nn.Conv2d(3, 4, 3).eval()
    model.weight = nn.Parameter(torch.randn(4, 3, 3, 6)[..., :3])  # with gaps
    x, found = (torch.randn(1, 3, 8, 8),), []
    for turned in (model, copy.deepcopy(model).to(memory_format=torch.channels_last)):
        twin, _, _ = rebuilt(turned, x, tmp_path)
        assert torch.equal(twin.weight, turned.weight)
        found.append(twin.weight.stride())
    assert found == [(54, 18, 6, 1), (27, 1, 9, 3)]
    assert len([*(tmp_path / "live").iterdir()]) == 2


@pytest.mark.parametrize("scale", [torch.randn(4, 3), torch.randn(1, 3).expand(4, 3)])
def test_a_buffer_that_no_state_has_travels_by_value(scale: torch.Tensor, tmp_path: Path) -> None:
    script = import_source(
        "import torch\n\n"
        "class Local(torch.nn.Module):\n    def forward(self, x):\n        return x * self.scale\n",
        "no_file_of_this_name",
    )
    del sys.modules["no_file_of_this_name"]
    model = script.Local().eval()
    model.register_buffer("scale", scale, persistent=False)
    definition = live_target(model, (torch.randn(4, 3),), "cpu", tmp_path).definition
    for weights in (tmp_path / "live").iterdir():
        weights.unlink()
    built = load_problem(definition).build(seed=0)
    assert torch.equal(built.scale, scale)
    assert built.scale.stride() == scale.stride()


@pytest.mark.parametrize("kind", [nn.Parameter, nn.Buffer])
def test_a_weight_whose_elements_share_memory_is_refused_in_a_sentence(kind: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    for view in (torch.ones(2).expand(3, 2), torch.ones(4).unfold(0, 2, 1)):
        model[0].scale = kind(view)
        with pytest.raises(UsageError, match=r"elements of 0\.scale in Sequential .*: call contiguous\(\)"):
            structure(model)
        model[0].scale = kind(view.contiguous())
        assert "0.scale" in structure(model).weights


def test_a_class_of_a_script_goes_by_value(tmp_path: Path) -> None:
    """Its source runs in a namespace that no other process can import, as `__main__` is."""
    script = import_source(
        "import torch\nK = 0.5\ndef act(x):\n    return torch.sigmoid(x) * K\n\n"
        "class Local(torch.nn.Module):\n    def forward(self, x):\n        return act(x) + x\n",
        "no_file_of_this_name",
    )
    del sys.modules["no_file_of_this_name"]
    x = torch.randn(3, 5)
    twin, _, definition = rebuilt(script.Local().eval(), (x,), tmp_path)
    assert definition.import_root is None
    assert torch.equal(twin(x), torch.sigmoid(x) * 0.5 + x)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("make", [weight_norm, spectral_norm, orthogonal])
def test_a_parametrized_module_is_rebuilt_with_its_weights(make: Any, nested: bool, tmp_path: Path) -> None:
    inner, x = make(nn.Linear(4, 4)), torch.randn(3, 4)
    model = nn.Sequential(inner, nn.ReLU(), inner).eval() if nested else inner.eval()
    built, _, definition = rebuilt(model, (x,), tmp_path)
    state = model.state_dict()
    assert any("parametrizations.weight.original" in key for key in state)
    assert built.state_dict().keys() == state.keys()
    assert all(torch.equal(value, state[key]) for key, value in built.state_dict().items())
    assert torch.equal(built(x), model(x))
    assert torch.equal(copy.deepcopy(built)(x), model(x))
    assert [type(m).__name__ for m in built.modules()] == [type(m).__name__ for m in model.modules()]
    assert definition.import_root is None
    assert is_parametrized(inner)
    assert is_parametrized(built[2] if nested else built)
    if nested:
        assert built[0] is built[2]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: utils.weight_norm(nn.Linear(2048, 2048)), "weight"),
        (lambda: utils.spectral_norm(nn.Linear(256, 256)), "weight"),
        (lambda: l1_unstructured(nn.Linear(256, 256), "weight", 0.5), "weight"),
        (lambda: l1_unstructured(utils.weight_norm(nn.Linear(256, 256)), "weight_v", 0.5), "weight"),
        (lambda: utils.weight_norm(nn.LSTM(256, 128), "weight_hh_l0"), "weight_hh_l0"),
    ],
    ids=["weight_norm", "spectral_norm", "pruned", "pruned weight_norm", "recurrent"],
)
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_what_a_hook_computes_is_no_structure(make: Any, name: str, tmp_path: Path) -> None:
    inner = make()
    model, x = nn.Sequential(inner).eval(), torch.randn(3, 256 if name != "weight" else inner.in_features)
    wanted, before = model(x), getattr(inner, name)
    found = structure(model)
    assert len(found.data) < 50_000
    source = SOURCE.format(
        name="Sequential", listing="", imports="", strided="", inputs="[]",
        weights=str(_keep(found.weights, tmp_path)), data=base64.b64encode(found.data).decode(),
    )  # fmt: skip
    built = import_source(source, "no_file_of_this_name").Model()
    del sys.modules["no_file_of_this_name"]
    assert torch.equal(getattr(built[0], name), before)
    assert built.state_dict().keys() == model.state_dict().keys()
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in built.state_dict().items())
    assert all(map(torch.equal, tree_leaves(built(x)), tree_leaves(wanted)))
    assert getattr(inner, name) is before


def test_complex_weights_travel_beside_the_structure(tmp_path: Path) -> None:
    script = import_source(
        "import torch\n\n"
        "class Spectral(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.weight = torch.nn.Parameter(torch.randn(300, 300, dtype=torch.complex64))\n"
        "        self.register_buffer('shift', torch.randn((), dtype=torch.complex64))\n"
        "    def forward(self, x):\n"
        "        return torch.fft.irfft(torch.fft.rfft(x) @ self.weight + self.shift)\n",
        "no_file_of_this_name",
    )
    del sys.modules["no_file_of_this_name"]
    model, x = script.Spectral().eval(), torch.randn(2, 598)
    built, _, definition = rebuilt(model, (x,), tmp_path)
    assert len(definition.reference) < 50_000
    assert torch.equal(built(x), model(x))
    (weights,) = (tmp_path / "live").iterdir()
    weights.unlink()
    drawn = load_problem(definition).build(seed=0)
    assert drawn.weight.dtype is torch.complex64
    assert drawn.weight.imag.std() > 0.5
    drawn.load_state_dict(model.state_dict())
    assert torch.equal(drawn(x), model(x))


def test_a_structure_fits_into_the_source_of_a_solution() -> None:
    assert MOST_STRUCTURE_BYTES * 4 * 101 // 300 < (15 << 20)


def test_training_modes_dtype_and_frozen_parameters_are_kept(nets: ModuleType, tmp_path: Path) -> None:
    model = nets.Net().to(torch.bfloat16)
    model.norm.eval()
    model.first.bias.requires_grad_(False)
    twin, _, _ = rebuilt(model, (torch.randn(4, 16, dtype=torch.bfloat16),), tmp_path)
    assert [m.training for m in twin.eval().modules()] == [m.training for m in model.modules()]
    assert twin.first.weight.dtype is torch.bfloat16
    assert not twin.first.bias.requires_grad
    assert model.training


@pytest.mark.parametrize(
    "layer",
    [
        nn.Dropout(0.1),
        nn.BatchNorm1d(4),
        nn.RReLU(),
        nn.MultiheadAttention(4, 1, dropout=0.1),
        nn.LSTM(4, 4, num_layers=2, dropout=0.1),
    ],
)
def test_a_layer_that_differs_in_training_mode_asks_for_eval(layer: nn.Module) -> None:
    model = nn.Sequential(nn.Linear(4, 4), layer)
    with pytest.raises(UsageError, match=r"call model.eval\(\) first"):
        check(model)
    check(model.eval())


def test_layers_without_dropout_may_be_in_training_mode() -> None:
    check(nn.Sequential(nn.Dropout(0.0), nn.MultiheadAttention(4, 1), nn.GRU(4, 4, num_layers=2)))


class Functional(nn.Module):
    """Calls that fail, or are random, for reasons of their own."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor, other: Any = None) -> Any:
        if self.call == "dropout":
            return nn.functional.dropout(x, 0.5, self.training)
        if self.call == "split":
            return torch.cat(torch.split(x, other.tolist()))
        if self.call == "pad":
            return nn.functional.pad(x, other["sizes"] + list(other["more"]))
        return x


@pytest.mark.slow
def test_dropout_of_a_module_in_training_mode_asks_for_eval(tmp_path: Path) -> None:
    model, x = Functional("dropout"), (torch.randn(64, 8),)
    with pytest.raises(TargetError, match=r"output is random: .*; the model is in .*: call model.eval\(\)"):
        live_target(model, x, "cpu", tmp_path)
    assert live_target(model.eval(), x, "cpu", tmp_path).workloads


@pytest.mark.slow
def test_integers_that_need_a_sum_are_explained(tmp_path: Path) -> None:
    lengths = torch.tensor([1, 2, 3, 50, 8])
    with pytest.raises(TargetError, match=r"forward raises .*: if they need an order or a sum.*get_inputs"):
        live_target(Functional("split").eval(), (torch.randn(64, 8), lengths), "cpu", tmp_path)


@pytest.mark.slow
def test_containers_of_numbers_are_arguments(tmp_path: Path) -> None:
    other = {"sizes": [1, 2], "more": (0, 3), "none": {}}
    target = live_target(Functional("pad").eval(), (torch.randn(4, 8), other), "cpu", tmp_path)
    names = [i.name for i in target.workloads[0].inputs]
    assert names == ["x", "other.sizes.0", "other.sizes.1", "other.more.0", "other.more.1"]
    (x, again), _ = load_problem(target.definition).inputs(seed=0)
    assert (x.shape, again) == ((4, 8), other)


def test_one_tensor_in_several_places_is_a_note(tmp_path: Path) -> None:
    x, y = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    (note,) = live_target(model, (x, x, x), "cpu", tmp_path).notes
    assert note.startswith("inputs.0, inputs.1 and inputs.2 are one tensor in the example")
    (note,) = live_target(model, {"query": x, "key": y, "value": y}, "cpu", tmp_path).notes
    assert note.startswith("inputs.key and inputs.value are one tensor in the example")
    assert not live_target(model, (x, y, y.clone()), "cpu", tmp_path).notes


def test_a_graph_module_is_refused_unless_another_module_calls_it(tmp_path: Path) -> None:
    traced, x = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU())).eval(), torch.randn(2, 4)
    with pytest.raises(UsageError, match=r"is a torch\.fx\.GraphModule.*: pass the nn\.Module that it was"):
        check(traced)
    outer = nn.Sequential(traced)
    twin, _, _ = rebuilt(outer, (x,), tmp_path)
    assert torch.equal(twin(x), outer(x))
    assert torch.equal(copy.deepcopy(twin)(x), outer(x))


class Tables(nn.Module):
    """Large integers, a large mask, and a few indices."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(1_600_000) * 7919 % 90_000)
        self.register_buffer("mask", torch.rand(300, 300) < 0.5)
        self.register_buffer("order", torch.tensor([2, 0, 1]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(self.mask.reshape(-1)[self.table[: x.numel()]].view_as(x), x, -x)[self.order]


@pytest.mark.slow
def test_large_saved_buffers_of_integers_travel_beside_the_structure(tmp_path: Path) -> None:
    model, x = Tables().eval(), torch.randn(3, 5)
    assert set(structure(model).weights) == {"table", "mask"}
    built, _, definition = rebuilt(model, (x,), tmp_path)
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in built.state_dict().items())
    (weights,) = (tmp_path / "live").iterdir()
    weights.unlink()
    drawn = load_problem(definition).build(seed=0)
    assert torch.equal(drawn.order, model.order)
    assert not torch.equal(drawn.table, model.table)
    assert 0 <= drawn.table.min() <= drawn.table.max() < 90_000
    assert (drawn.mask.dtype, 0.4 < drawn.mask.float().mean() < 0.6) == (torch.bool, True)
    drawn.load_state_dict(model.state_dict())
    assert torch.equal(drawn(x), model(x))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.int16])
def test_integers_of_the_whole_range_are_drawn(dtype: torch.dtype, tmp_path: Path) -> None:
    ends = torch.iinfo(dtype)
    random = torch.randint(ends.min, ends.max, (70_000,), dtype=dtype)
    table = torch.cat([torch.tensor([ends.min, ends.max], dtype=dtype), random])
    _, _, definition = rebuilt(Holds(table).eval(), (torch.ones(2),), tmp_path)
    (weights,) = (tmp_path / "live").iterdir()
    weights.unlink()
    table = load_problem(definition).build(seed=0).table
    assert table.dtype is dtype
    assert table.unique().numel() > 100


class Holds(nn.Module):
    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table[0].float()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize("kind", [nn.Parameter, nn.Buffer])
def test_sparse_weights_are_a_part_of_the_structure(kind: Any, layout: torch.layout, tmp_path: Path) -> None:
    model, x = nn.Sequential(Multiplies()).eval(), torch.randn(6, 3)
    model[0].matrix = kind(torch.eye(6).roll(1, 0).to_sparse(layout=layout))
    twin, _, _ = rebuilt(model, (x,), tmp_path)
    assert type(twin[0].matrix) is (nn.Parameter if kind is nn.Parameter else torch.Tensor)
    assert twin[0].matrix.layout is layout
    assert torch.equal(twin(x), model(x))


class Multiplies(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = self.matrix @ x
        return product


def test_lazy_and_scripted_modules_are_refused_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="call it once"):
        check(nn.LazyLinear(3))
    with pytest.raises(UsageError, match="call it once"):
        check(nn.LazyBatchNorm1d(affine=False).eval())
    with pytest.warns(DeprecationWarning):
        traced = torch.jit.trace(nn.Linear(2, 2), torch.randn(1, 2))
    with pytest.raises(UsageError, match="TorchScript"):
        check(traced)


def test_what_cannot_be_pickled_is_refused_in_a_sentence() -> None:
    model = nn.Linear(2, 2)
    model.lock = threading.Lock()
    with pytest.raises(UsageError, match=r"remove that attribute, or put the class into a file"):
        structure(model)


def test_inputs_are_drawn_like_the_example() -> None:
    inputs = {
        "ids": torch.tensor([[3, 7], [9, 3]]),
        "mask": torch.ones(2, 2, dtype=torch.bool),
        "states": [torch.rand(2, 3), (torch.randn(4).to(torch.float16), None)],
        "flag": True,
        "scale": float("inf"),
        "turned": torch.randn(3, 5).t(),
    }
    namespace: dict[str, Any] = {"torch": torch}
    from agentforge.profiling.graph.extract import STRIDED

    exec(STRIDED, namespace)
    drawn = eval(draw_inputs(inputs), namespace)
    assert drawn["ids"].dtype is torch.int64
    assert 3 <= drawn["ids"].min() <= drawn["ids"].max() <= 9
    assert drawn["mask"].all()
    assert drawn["states"][0].shape == (2, 3)
    assert drawn["states"][0].min() >= 0
    assert (drawn["states"][1][0].dtype, drawn["states"][1][1]) == (torch.float16, None)
    assert (drawn["flag"], drawn["scale"]) == (True, float("inf"))
    assert drawn["turned"].stride() == (1, 5)


def test_an_input_of_another_kind_is_refused_in_a_sentence() -> None:
    with pytest.raises(UsageError, match=r"inputs\[0\] is a object: pass tensors"):
        draw_inputs((object(),))


def test_a_full_disk_leaves_no_part_of_the_weights(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # as if the disk had no more room
    try:
        with pytest.raises(MachineError, match="free some space"):
            live_target(nn.Linear(300, 300).eval(), (torch.randn(2, 300),), "cpu", tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / "live").iterdir()) == []


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (numpy.float64(1.5), "is a float64, and no kernel runs for that: make it a plain float"),
        (signal.SIGINT, "is a Signals, .* a plain int"),
        (OrderedDict(a=torch.ones(2)), "is a OrderedDict, .* a plain dict"),
        (UserDict(a=torch.ones(2)), "is a UserDict, .* a plain dict"),
        (torch.Size([2]), "is a Size, .* a plain tuple"),
        (torch.ones(2).as_subclass(Marked), "is a Marked, .* a plain Tensor"),
        (Point(torch.ones(2)), "is a Point: pass tensors"),
    ],
)
def test_an_input_that_no_kernel_runs_for_is_refused_in_a_sentence(value: Any, says: str) -> None:
    with pytest.raises(UsageError, match=rf"inputs\.batch\[0\] {says}"):
        draw_inputs({"batch": [value]})


def test_a_mapping_of_all_arguments_need_not_be_a_dict() -> None:
    drawn = draw_inputs(UserDict(flag=True, step=nn.Parameter(torch.ones(1))))
    assert drawn.startswith("{'flag': True, 'step': ")


def test_a_forward_that_fails_says_so(nets: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="forward raises RuntimeError"):
        live_target(nets.Net().eval(), (torch.randn(4, 17),), "cpu", tmp_path)


def test_what_is_no_model_is_refused_in_a_sentence() -> None:
    settings = load_settings(None)
    with pytest.raises(UsageError, match="not the class Linear"):
        as_target(nn.Linear, (), "cpu", settings)
    with pytest.raises(UsageError, match="give example inputs"):
        as_target(nn.Linear(2, 2), None, "cpu", settings)
    with pytest.raises(UsageError, match="brings its own inputs"):
        as_target("model.py", (torch.ones(1),), "cpu", settings)
    with pytest.raises(UsageError, match="init_args takes what JSON can express"):
        as_target("model.py:Net", torch.ones(1), "cpu", settings, init_args=[object()])
    with pytest.raises(UsageError, match="dtype goes with a path"):
        as_target(nn.Linear(2, 2), torch.ones(1, 2), "cpu", settings, dtype=torch.bfloat16)
    for wrong, name in (
        (nn.Linear, "the class Linear"),
        (len, "a builtin_function_or_method"),
        (None, "a NoneType"),
    ):
        with pytest.raises(UsageError, match=f"give an nn.Module or a path .*, not {name}"):
            where_of(wrong, "auto")
    for device in ("auto", "cpu", "cpu:0", torch.device("cpu")):
        assert where_of(nn.Linear(2, 2), device) == "cpu"
    with pytest.raises(UsageError, match=r"model.to\('cuda'\)"):
        where_of(nn.Linear(2, 2), "cuda")
    for device in ("auto", "cpu"):
        with pytest.raises(UsageError, match=r"on the meta device: call model\.to_empty\(.*load its weights"):
            where_of(nn.Linear(2, 2, device="meta"), device)


def test_weights_of_a_file_have_the_dtype_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("import torch\n\n\nclass Net(torch.nn.Linear):\n    pass\n")
    settings = load_settings({"home": str(tmp_path / "home")})
    target = as_target(
        f"{tmp_path}/nets.py:Net",
        torch.ones(2, 3, dtype=torch.bfloat16),
        "cpu",
        settings,
        init_args=[3, 4],
        dtype=torch.bfloat16,
    )
    assert "self.to(torch.bfloat16)" in target.definition.reference


def test_the_module_is_found_again_while_it_lives(
    nets: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path))
    model = nets.Net().eval()
    target = as_target(torch.compile(model), torch.randn(2, 16), "cpu", load_settings(None))
    assert live_module(target.definition.hash) is model
    del model
    assert live_module(target.definition.hash) is None


SCRIPT = """
import sys
import torch
print("once")

class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((64,), 2.0))
    def forward(self, x):
        return torch.nn.functional.gelu(x) * self.weight

import agentforge
from tests.quick import leave_out

leave_out()
profile = agentforge.profile(Scaled(), (torch.randn(64, 64),))
print(len(profile.bottlenecks), "bottlenecks")
"""


@pytest.mark.slow
def test_a_repl_runs_its_lines_once(tmp_path: Path) -> None:
    command = [sys.executable, "-i", "-q"]
    env = {
        "AGENTFORGE_HOME": str(tmp_path / "home"),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": ":".join(sys.path),
    }
    done = subprocess.run(
        command, input=SCRIPT, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.stdout.splitlines() == ["once", "1 bottlenecks"], done.stderr


@pytest.mark.slow
def test_an_artifact_of_a_live_module_runs_its_kernels_in_it(nets: ModuleType, tmp_path: Path) -> None:
    """Class, structure and weights are recognised again, though the artifact was made from a stand-in."""
    model, x = nets.Net().eval(), torch.randn(4, 16)
    definition = live_target(model, (x,), "cpu", tmp_path).definition
    stitched = stitch_in_process(definition.reference, tmp_path / "work")
    write_artifact(
        tmp_path / "fast", stitched.target, stitched.solution, report(stitched), cache=tmp_path / "cache"
    )
    artifact = load(tmp_path / "fast")
    fast = artifact.optimize(model)
    with torch.inference_mode():
        torch.testing.assert_close(fast(x), model(x))
        ran = artifact.calls()
        model.first.weight.mul_(2)
        torch.testing.assert_close(fast(x), model(x))
    assert ran
    assert all(ran.values())
    assert type(model) is nets.Net
    assert artifact.restore(fast)(x).shape == x.shape
    with pytest.raises(TargetError, match="another model"):
        artifact.optimize(nn.Linear(16, 16))
