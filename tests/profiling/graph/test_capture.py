from __future__ import annotations

import copy
import functools
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

from agentforge.profiling.graph.capture import Example, capture_examples
from agentforge.profiling.graph.extract import CannotExtract, extract
from agentforge.profiling.graph.regions import partition
from agentforge.profiling.graph.value_capture import record
from tests.profiling.captured import capture_units

from ..models import MODELS, PartlyDynamic, make


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_computes_what_the_model_computes(name):
    model, args, kwargs = make(name)
    captured = capture_units(model, args, kwargs)
    assert [u.path for u in captured.units] == [""]
    with torch.no_grad():
        wanted, got = model(*args, **kwargs), captured.units[0].graph_module(*args, **kwargs)
    for a, b in zip(tree_leaves(got), tree_leaves(wanted), strict=True):
        assert torch.equal(a, b)


def test_names_are_the_same_every_time():
    names = []
    for _ in range(2):
        model, args, kwargs = make("gpt2")
        names.append([n.name for n in capture_units(model, args, kwargs).units[0].graph_module.graph.nodes])
    assert names[0] == names[1]


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_attributes_of_the_users_module(name):
    model, args, kwargs = make(name)
    (unit,) = capture_units(model, args, kwargs).units
    held = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for node in unit.graph_module.graph.find_nodes(op="get_attr"):
        assert node.target in held or node.target in unit.constants


def test_the_exportable_parts_of_a_model_that_does_not_export():
    model = PartlyDynamic().eval()
    captured = capture_units(model, (torch.randn(2, 16, 32),), {})
    assert [u.path for u in captured.units] == ["blocks.0", "blocks.1"]
    assert "in parts" in captured.notes[0]
    assert "depend on a tensor's values" in captured.notes[0]
    for unit in captured.units:
        with torch.no_grad():
            got = unit.graph_module(*unit.args, **unit.kwargs)
            assert torch.equal(got, model.get_submodule(unit.path)(*unit.args, **unit.kwargs))


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.other = nn.LayerNorm(4), torch.jit.script(nn.Linear(4, 4))

    def forward(self, x):
        return self.other(self.norm(x))


def test_a_scripted_submodule_is_left_out():
    captured = capture_units(Scripted().eval(), (torch.randn(2, 4),), {})
    assert [u.path for u in captured.units] == ["norm"]
    assert "packed (quantized or scripted) parameters" in captured.notes[0]


@pytest.mark.parametrize(
    "of",
    [lambda x: float(x.sum()), lambda x: x[x > 0][0], lambda x: len(x[x > 0])],
    ids=["a sum", "an element", "a length"],
)
def test_dependence_on_values_is_found_by_the_exception(of):
    class Other(nn.Module):
        def forward(self, x):
            return x + 1 if of(x) > 1 else x

    captured = capture_units(Other().eval(), (torch.randn(2, 4),), {})
    assert captured.units == ()
    assert "depend on a tensor's values" in captured.notes[0]


def test_a_unit_that_its_check_refuses_is_captured_in_parts():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()

    def check(unit):
        if not unit.path:
            raise ValueError("not this one")

    captured = capture_units(model, (torch.randn(2, 4),), {}, check)
    assert [u.path for u in captured.units] == ["0", "1"]
    assert "not this one" in captured.notes[0]


class Packs(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        return self.rnn(packed)[1]


def test_packed_sequences_are_the_reason():
    captured = capture_units(Packs().eval(), (torch.randn(2, 3, 4), torch.tensor([3, 2])), {})
    assert not captured.units
    assert all("packed sequences" in note for note in captured.notes)
    assert len(captured.notes) == 2


def test_calls_of_a_shared_module_are_counted():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            for _ in range(3):
                x = self.fc(x)
                if x.sum().item() > 1e9:
                    return x
            return x

    (unit,) = capture_units(Shared().eval(), (torch.randn(2, 4),), {}).units
    assert (unit.path, unit.calls) == ("fc", 3)


class Pyramid(nn.Module):
    """One head for several levels, behind a branch that keeps the model from being one unit."""

    def __init__(self):
        super().__init__()
        self.head = Scale()

    def forward(self, x):
        if x.sum().item() > 1e9:
            return x
        self.head(x)
        self.head(x=x, by=1.0)
        self.head(x.as_strided((2, 1, 4), (4, 9, 1)))  # no element is elsewhere
        for other in (x[:1], x.transpose(0, 2).contiguous().transpose(0, 2), x.double(), [x]):
            self.head(other)
        self.head(x, 2.0)
        self.head(x, 1)
        return self.head(x, None)


class Scale(nn.Module):
    def forward(self, x, by=1.0):
        x = x[0] if isinstance(x, list) else x
        return torch.relu(x) * (by or 1.0)


def test_only_calls_like_the_first_are_counted():
    captured = capture_units(Pyramid().eval(), (torch.randn(2, 1, 4),), {})
    (unit,) = captured.units
    assert (unit.path, unit.calls) == ("head", 3)
    assert captured.notes[-1] == (
        "calls with other shapes or constants than a module's first one have no row and get no kernel: "
        "7 of 10 of head"
    )


def test_a_note_names_a_few_of_the_modules_that_are_called_with_several_shapes():
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleList([Scale() for _ in range(5)])

        def forward(self, x):
            if x.sum().item() > 1e9:
                return x
            return [head(level) for head in self.heads for level in (x, x[:1])]

    (_, note) = capture_units(Many().eval(), (torch.randn(2, 4),), {}).notes
    assert note.endswith("1 of 2 of heads.0, 1 of 2 of heads.1, 1 of 2 of heads.2, some of 2 more modules")


BLOCK = torch.ops.higher_order.wrap_with_autocast


class Mixed(nn.Module):
    """A norm in float32, as mixed precision needs it; the block has other blocks within it."""

    def __init__(self, enabled=False):
        super().__init__()
        self.fc, self.enabled = nn.Linear(8, 8), enabled

    def forward(self, x):
        y = self.fc(x)
        with torch.autocast("cpu", enabled=False):
            y = y * torch.rsqrt(y.float().pow(2).mean(-1, keepdim=True) + 1e-6)
            with torch.enable_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self.enabled):
                y = torch.sigmoid(y @ self.fc.weight) * y
            z = torch.relu(y) + 1
        return z, self.fc(y)


def test_code_under_a_disabled_autocast_has_regions():
    model, x = Mixed().eval(), torch.randn(4, 8)
    (unit,) = capture_units(model, (x,), {}).units
    nodes = [n for n in unit.graph_module.graph.nodes if n.op == "call_function"]
    assert not [
        n.name for n in nodes if n.target in (BLOCK, torch.ops.higher_order.wrap_with_set_grad_enabled)
    ]
    assert {"rsqrt", "sigmoid", "relu"} <= {n.name for n in nodes}
    in_regions = {n.name for region in partition(unit.graph_module.graph) for n in region.nodes}
    assert {"rsqrt", "sigmoid", "relu"} <= in_regions
    with torch.no_grad():
        assert all(map(torch.equal, unit.graph_module(x), model(x)))
    assert [n.name for n in nodes] == [
        n.name
        for n in capture_units(Mixed().eval(), (x,), {}).units[0].graph_module.graph.nodes
        if n.op == "call_function"
    ]


def test_an_enabled_autocast_within_a_disabled_one_stays_a_block():
    model, x = Mixed(enabled=True).eval(), torch.randn(4, 8)
    (unit,) = capture_units(model, (x,), {}).units
    graph = unit.graph_module.graph
    names = [n.name for n in graph.nodes]
    assert len(graph.find_nodes(op="call_function", target=BLOCK)) == 1
    assert "rsqrt" in names
    assert "sigmoid" not in names
    with torch.no_grad():
        assert all(map(torch.equal, unit.graph_module(x), model(x)))


def test_writes_through_a_view_are_not_made_out_of_place():
    class Writes(nn.Module):
        def forward(self, x):
            y = x * 2
            y[:, 0] += 1
            return torch.relu(y) + y.sum()

    model, x = Writes().eval(), torch.randn(3, 4)
    (unit,) = capture_units(model, (x,), {}).units
    assert torch.equal(unit.graph_module(x), model(x))


def test_a_write_that_others_saw_before_it():
    class Writes(nn.Module):
        def forward(self, x):
            y = x * 2
            before = y + 0
            y.relu_()
            return before + y, y

    model, x = Writes().eval(), torch.randn(3, 4)
    (unit,) = capture_units(model, (x,), {}).units
    got, wanted = unit.graph_module(x), model(x)
    assert torch.equal(got[0], wanted[0])
    assert torch.equal(got[1], wanted[1])
    assert "relu_.default" not in unit.graph_module.code


class InPlace(nn.Module):
    """Writes in place as users do; `way` is one of its methods."""

    def __init__(self, way):
        super().__init__()
        self.way, self.drop = way, nn.Dropout(0.1)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        return getattr(self, self.way)(x)

    def running_mean(self, x):
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return torch.tanh(x) + self.mean

    def chain_on_the_input(self, x):
        return torch.tanh(x.mul_(2).add_(1)) * 2

    def through_dropout(self, x):
        h = x * 3
        y = self.drop(h)
        y += 1.0
        return y * 2 + h

    def through_a_cast_without_effect(self, x):
        h = x * 3
        y = h.type_as(x)
        y += 1.0
        return y * 2 + h

    def after_a_write_that_stays(self, x):
        h = x.to(torch.float64)
        a = h.mul_(x)
        h.add_(1)
        return a * 2 + h


@pytest.mark.parametrize(
    "way", [name for name, value in vars(InPlace).items() if name[0] != "_" and name != "forward"]
)
def test_writes_in_place_reach_whatever_shares_the_memory(way):
    model, x = InPlace(way).eval(), torch.randn(3, 4)
    (unit,) = capture_units(copy.deepcopy(model), (x.clone(),), {}).units
    given, expected = x.clone(), x.clone()
    wanted = model(expected)
    assert torch.equal(unit.graph_module(given), wanted)
    assert torch.equal(given, expected)
    (mean,) = [b for n, b in unit.graph_module.named_buffers() if n == "mean"] or [model.mean]
    assert torch.equal(mean, model.mean)


def test_a_chain_of_writes_to_a_new_value_is_made_out_of_place():
    class Chain(nn.Module):
        def forward(self, x):
            y = torch.zeros_like(x).add_(x).relu_()
            return y.view(-1).mul_(2)

    (unit,) = capture_units(Chain().eval(), (torch.randn(3, 4),), {}).units
    assert "relu_.default" not in unit.graph_module.code
    assert "add_.Tensor" not in unit.graph_module.code


def test_keyword_arguments_in_another_order():
    class Keywords(nn.Module):
        def forward(self, x, *, scale, shift):
            return x * scale - shift

    model = Keywords().eval()
    kwargs = {"shift": torch.full((3,), 5.0), "scale": torch.full((3,), 2.0)}
    (unit,) = capture_units(model, (torch.ones(3),), kwargs).units
    seen = record(unit, list(unit.graph_module.graph.nodes))
    (result,) = [s for n, s in seen.items() if n.name == "sub"]
    assert result.tensor.distribution.a == pytest.approx(
        -3.3
    )  # around 1 * 2 - 5, with the spread of a constant


@pytest.mark.slow
def test_each_example_is_captured_under_its_name():
    model = nn.Linear(4, 4).eval()
    examples = [Example((torch.randn(n, 4),), {}, name) for n, name in ((3, "many"), (1, "one"))]
    units = capture_examples(model, examples).units
    assert [(u.path, u.example, u.name) for u in units] == [("", "many", "@many"), ("", "one", "@one")]
    assert [u.args[0].shape[0] for u in units] == [3, 1]
    parts = capture_examples(
        PartlyDynamic().eval(), [replace(e, args=(torch.randn(2, 16, 32),)) for e in examples]
    )
    assert {u.name for u in parts.units} == {
        f"{u.path}@{name}" for u in parts.units for name in ("many", "one")
    }


def test_tensors_that_a_model_keeps_from_its_first_call_are_real():
    """A cached function and a buffer made in forward would keep fake tensors of the export."""

    @functools.cache
    def positions(n):
        return torch.arange(n).float()

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            if not hasattr(self, "cos"):
                self.register_buffer("cos", torch.cos(torch.arange(4).float()))
            return x * self.cos + positions(4)

    model, x = Keeps().eval(), torch.randn(3, 4)
    (unit,) = capture_units(model, (x,), {}).units
    assert model.calls == 0
    output = model(x)
    assert type(output) is type(model.cos) is type(positions(4)) is torch.Tensor
    assert torch.equal(unit.graph_module(x), output)


def test_a_lazy_conjugate_is_no_identity():
    class Conjugates(nn.Module):
        def forward(self, z):
            return torch.view_as_real(z.conj() * 2), z.conj().imag + 1

    z = torch.randn(3, 4, dtype=torch.complex64)
    (unit,) = capture_units(Conjugates().eval(), (z,), {}).units
    for got, wanted in zip(unit.graph_module(z), Conjugates()(z), strict=True):
        assert torch.equal(got, wanted)


class Attends(nn.Module):
    """As nanoGPT's attention, with a gate in place of the projection if it is gated."""

    def __init__(self, gated):
        super().__init__()
        self.qkv, self.proj = nn.Linear(16, 48), nn.Linear(16, 16)
        self.gated = gated

    def forward(self, x):
        batch, tokens, dim = x.shape
        q, k, v = (t.view(batch, tokens, 2, 8).transpose(1, 2) for t in self.qkv(x).split(dim, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(batch, tokens, dim)
        return torch.sigmoid(x) * y if self.gated else self.proj(y)


@pytest.mark.parametrize("gated", [False, True])
def test_another_backend_of_attention_may_be_chosen(gated):
    model, x = Attends(gated).eval(), torch.randn(2, 4, 16)
    (unit,) = capture_units(model, (x,), {}).units
    inputs = {n for region in partition(unit.graph_module.graph) for n in region.inputs}
    captured = {n.name: n.meta["val"].stride() for n in inputs}

    class Strides(torch.fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            if n in inputs and isinstance(result, torch.Tensor):
                assert result.stride() == captured[n.name], n
            return result

    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with torch.no_grad(), sdpa_kernel(backend):
            torch.testing.assert_close(unit.graph_module(x), model(x))
            Strides(unit.graph_module).run(x)


def test_attention_that_is_written_in_place_shares_its_memory():
    class Writes(nn.Module):
        def forward(self, x):
            y = F.scaled_dot_product_attention(x, x, x)
            y.transpose(1, 2).mul_(2)
            return y + 1

    model, x = Writes().eval(), torch.randn(2, 4, 3, 8).transpose(1, 2)
    (unit,) = capture_units(model, (x,), {}).units
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
        with torch.no_grad(), sdpa_kernel(backend):
            torch.testing.assert_close(unit.graph_module(x), model(x))


def test_a_branch_in_the_graph_is_captured_whole():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(4)

        def forward(self, x):
            return self.norm(torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)))

    model, x = Branches().eval(), torch.randn(3, 4)
    (unit,) = capture_units(model, (x,), {}).units
    assert unit.path == ""
    assert torch.equal(unit.graph_module(x), model(x))


def test_a_part_that_takes_nested_tensors_has_no_sizes():
    class Ragged(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, a, b):
            rows = torch.nested.nested_tensor([a, b], layout=torch.jagged)
            return torch.nested.to_padded_tensor(self.linear(rows), 0.0)

    captured = capture_units(Ragged().eval(), (torch.randn(3, 4), torch.randn(2, 4)), {})
    (unit,) = captured.units
    assert unit.path == "linear"
    assert "because it computes with nested tensors" in captured.notes[0]
    (region,) = partition(unit.graph_module.graph)
    with pytest.raises(CannotExtract, match="nested"):
        extract(region, record(unit, [*region.inputs, *region.outputs]))


def test_a_buffer_made_under_inference_mode():
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            with torch.inference_mode():
                self.register_buffer("scale", torch.ones(4) * 2)

        def forward(self, x):
            return torch.relu(x) * self.scale

    model, x = Keeps().eval(), torch.randn(3, 4)
    (unit,) = capture_units(model, (x,), {}).units
    assert unit.path == ""
    assert torch.equal(unit.graph_module(x), model(x))
