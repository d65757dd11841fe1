"""Moves: the rewritten model computes the same, also after its weights have changed."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree

from agentforge.agents.playbook.model_planner import moves_for
from agentforge.config import RefereeSettings
from agentforge.devices import DeviceSpec, Roofline
from agentforge.profiling import profile_target
from agentforge.referee import Referee
from agentforge.schema import MoveKind, Solution
from agentforge.stitch import stitch
from agentforge.stitch.files import Mode
from agentforge.stitch.runtime.derived import DERIVED, Contents, Derived
from agentforge.stitch.variants import VariantBuilder
from tests.steady import SteadyReferee

from .making import BLOCK, Choose, Stitched, choose_all, import_folder, stitch_in_process, target_of

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
NET = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False)
        self.one = nn.BatchNorm2d(16)
        self.conv = nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.two = nn.BatchNorm2d(16, affine=False)
        self.point = nn.Conv2d(16, 24, 1)
        self.fc = nn.Linear(24, 10)
        self.last = nn.BatchNorm1d(10)
        for norm in (self.one, self.two, self.last):
            norm.running_mean.uniform_(-1.0, 1.0)
            norm.running_var.uniform_(0.5, 2.0)

    def forward(self, x):
        x = F.relu(self.one(self.stem(x)), inplace=True)
        y = self.two(self.conv(x))
        y += x
        z = self.point(F.max_pool2d(y, 2))
        return self.last(self.fc(z.mean((2, 3)))), z, z.view(z.shape[0], -1)[:, :3], z.permute(1, 0, 2, 3)


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs():
    return []
"""
)
GREY = (
    NET.replace("Conv2d(3,", "Conv2d(1,")
    .replace("randn(2, 3, 16, 16)", "randn(2, 1, 2, 2)")
    .replace("F.max_pool2d(y, 2)", "y")
)
ATTENTION = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(256, 256) for _ in range(3))
        self.gate, self.up = (nn.Linear(256, 512, bias=False) for _ in range(2))
        self.left, self.right = (nn.Parameter(torch.randn(512, 64)) for _ in range(2))
        self.register_buffer("positions", torch.arange(64.0))
        self.register_buffer("frequencies", 1.0 / 10.0 ** torch.arange(0, 1, 1 / 32))

    def forward(self, x):
        angles = torch.outer(self.positions, self.frequencies)
        turn = torch.cat((angles, angles), -1).cos()
        wave = turn.sin()
        q, k, v = (p(x).view(2, 64, 4, 64).transpose(1, 2) for p in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q * wave, k * wave, v).transpose(1, 2).reshape(2, 64, 256)
        z = F.silu(self.gate(y)) * self.up(y)
        return z @ self.left + z @ self.right, turn, self.up.weight.t()


def get_inputs():
    return [torch.randn(2, 64, 256)]


def get_init_inputs():
    return []
"""
)

HEADS = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(32, 8) for _ in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm1d(8) for _ in range(2))

    def forward(self, x):
        a, b = (norm(head(x)) for norm, head in zip(self.norms, self.heads))
        y = x * 2.0
        view = y[:, :4]
        c = self.heads[2](y)
        view.fill_(1.0)
        return a, b, c, self.heads[3](y)


def get_inputs():
    return [torch.randn(4, 32)]


def get_init_inputs():
    return []
"""
)


def close(found: Any, original: nn.Module, inputs: Sequence[torch.Tensor]) -> None:
    """Compare with the model in float64, and the strides with those of the model."""
    twin = copy.deepcopy(original).double()
    with torch.inference_mode():
        as_was = original(*inputs)
        exact = twin(*(x.double() if x.is_floating_point() else x for x in inputs))
    for got, plain, want in zip(*map(_pytree.tree_leaves, (found, as_was, exact)), strict=True):
        if not isinstance(got, torch.Tensor):
            assert got == plain
            continue
        assert got.dtype == plain.dtype
        assert got.stride() == plain.stride()
        torch.testing.assert_close(got.double(), want.double(), rtol=1e-4, atol=1e-4)


def twins(stitched: Stitched) -> tuple[nn.Module, nn.Module]:
    original, model = stitched.model(), stitched.package.optimize(stitched.model())
    model.load_state_dict(original.state_dict())
    return original, model


EVERY = tuple(MoveKind)
CASES = {
    "batch norm": (NET, ("fold_batch_norm",), {"fold_batch_norm": 3}),
    "layout": (NET, ("channels_last",), {"channels_last": 3}),
    "a net": (NET, EVERY, {"fold_batch_norm": 3, "channels_last": 3, "fuse_epilogues": 1}),
    "one channel": (GREY, EVERY, {"fold_batch_norm": 3, "channels_last": 3, "fuse_epilogues": 1}),
    "products": (ATTENTION, ("merge_products",), {"merge_products": 3}),
    "heads": (HEADS, EVERY, {"fold_batch_norm": 2, "merge_products": 1}),
    "constants": (ATTENTION, ("fold_constants",), {"fold_constants": 1}),
    "attention": (ATTENTION, EVERY, {"merge_products": 3, "fold_constants": 1}),
}


def _modes(case: str) -> list[Mode]:
    """Packed products meet all moves together, which include each single one."""
    return ["kernels", "kernels+packed"] if CASES[case][1] is EVERY else ["kernels"]


@pytest.mark.slow
@pytest.mark.parametrize("choose", [choose_all, lambda _: None], ids=["kernels", "no kernels"])
@pytest.mark.parametrize(("case", "mode"), [(case, mode) for case in CASES for mode in _modes(case)])
def test_a_moved_model_computes_the_same(case: str, mode: Mode, choose: Choose, tmp_path: Path) -> None:
    source, kinds, places = CASES[case]
    stitched = stitch_in_process(source, tmp_path, mode, choose, moves=[MoveKind(k) for k in kinds])
    if choose is not choose_all:
        assert stitched.places == places
    original, model = twins(stitched)
    for seed in range(2):
        inputs, _ = stitched.inputs(seed)
        with torch.inference_mode():
            close(model(*inputs), original, inputs)
        with torch.no_grad():
            close(model(*inputs), original, inputs)
            close(torch.compile(model, backend="eager", fullgraph=True)(*inputs), original, inputs)
    if any(plan["derived"] for plan in stitched.plans):
        assert sys.modules["agentforge_cpp"].calls()[DERIVED] >= 4


def _load(model: nn.Module) -> None:
    state = {name: t * 0.5 if t.is_floating_point() else t for name, t in model.state_dict().items()}
    model.load_state_dict(state)


def _each(change: Callable[[torch.Tensor], object]) -> Callable[[nn.Module], None]:
    def all_of(model: nn.Module) -> None:
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point():
                change(tensor)

    return all_of


def _replace(model: nn.Module) -> None:
    for part in model.modules():
        for name, old in list(part._parameters.items()):
            if old is not None:
                setattr(part, name, nn.Parameter(old.detach() * 1.5))


CHANGES: dict[str, Callable[[nn.Module], None]] = {
    "in place": _each(lambda t: t.mul_(1.25)),
    "one element through data": _each(lambda t: t.data.view(-1)[-1:].add_(1.0)),
    "other memory": _each(lambda t: setattr(t, "data", t.data * 0.75)),
    "loaded": _load,
    "replaced": _replace,
}


@pytest.mark.parametrize("source", [NET, ATTENTION], ids=["net", "attention"])
def test_changed_weights_are_noticed(source: str, tmp_path: Path) -> None:
    stitched = stitch_in_process(source, tmp_path, "kernels+packed", lambda _: None, moves=EVERY)
    original, model = twins(stitched)
    inputs, _ = stitched.inputs(0)
    for change in CHANGES.values():
        with torch.inference_mode():
            before = _pytree.tree_leaves(model(*inputs))[0]
        with torch.no_grad():
            change(original)
            change(model)
        with torch.inference_mode():
            assert not torch.equal(_pytree.tree_leaves(model(*inputs))[0], before)
            close(model(*inputs), original, inputs)


def test_one_changed_weight_is_enough(tmp_path: Path) -> None:
    """Each weight on its own: none is left out of the watched ones."""
    stitched = stitch_in_process(NET, tmp_path, "kernels+packed", lambda _: None, moves=EVERY)
    original, model = twins(stitched)
    inputs, _ = stitched.inputs(0)
    for name, tensor in original.state_dict().items():
        if not tensor.is_floating_point():
            continue
        for changed in (original, model):
            changed.state_dict()[name].data.view(-1)[0] += 0.5
        with torch.inference_mode():
            close(model(*inputs), original, inputs)


def test_gradients_and_other_shapes_run_the_original(tmp_path: Path) -> None:
    stitched = stitch_in_process(NET, tmp_path, "kernels", lambda _: None, moves=EVERY)
    original, model = twins(stitched)
    with pytest.warns(UserWarning, match="gradients are enabled"):
        model(*stitched.inputs(0)[0])[0].sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    other = [torch.randn(3, 3, 16, 16)]
    with torch.inference_mode():
        close(model(*other), original, other)


def test_outputs_may_be_written_to(tmp_path: Path) -> None:
    stitched = stitch_in_process(ATTENTION, tmp_path, "kernels", lambda _: None, moves=EVERY)
    original, model = twins(stitched)
    inputs, _ = stitched.inputs(0)
    with torch.inference_mode():
        model(*inputs)[1].zero_()
        close(model(*inputs), original, inputs)


TYPED = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.table = torch.nn.Parameter(torch.randn(8, 8)), torch.nn.Parameter(torch.randn(8))

    def forward(self, x):
        first, second = (self.table.log_softmax(dim).type_as(x) for dim in (0, -1))
        y = x @ self.w + first + self.table.exp().softmax(0)
        return y, first, second.mul_(x[0])


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return []
"""


def test_values_that_an_operator_may_hand_on_unchanged_are_not_kept(tmp_path: Path) -> None:
    """`type_as` returns its input, which the caller and an in-place operator write to here."""
    moves = [MoveKind.FOLD_CONSTANTS]
    stitched = stitch_in_process(TYPED, tmp_path, "kernels", lambda _: None, moves=moves)
    assert stitched.places == {"fold_constants": 1}
    original, model = twins(stitched)
    inputs, _ = stitched.inputs(0)
    with torch.inference_mode():
        for _ in range(3):
            close(model(*inputs), original, inputs)
            for output in model(*inputs):
                output.mul_(0.5)


def test_what_a_unit_writes_to_stays(tmp_path: Path) -> None:
    stitched = stitch_in_process(BLOCK, tmp_path, "kernels", moves=EVERY)
    original, model = twins(stitched)
    args, given = stitched.inputs(0)
    with torch.inference_mode():
        found, want = (_pytree.tree_leaves(m(*args, **given)) for m in (model, original))
    for got, expected in zip(found, want, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("change", [lambda w: w.data.view(-1)[7:8].add_(1.0), lambda w: w.add_(0.0)])
@pytest.mark.parametrize("shape", [(3,), (5, 7), (300, 401)])
def test_contents_are_all_bits(shape: tuple[int, ...], change: Callable[[torch.Tensor], object]) -> None:
    tensors = [torch.randn(shape), torch.randn(11), torch.randn(8, 8).t(), torch.ones(3, dtype=torch.bool)]
    for index in (1, 2) if len(shape) == 1 else (0, 1, 2):
        contents = Contents(tensors)
        assert contents.untouched(tensors)
        change(tensors[index].t() if index == 2 else tensors[index])
        assert not contents.untouched(tensors)


def test_each_model_has_its_own_derived_values() -> None:
    class Counts:
        @staticmethod
        def count(name: str) -> None:
            assert name == DERIVED

    made: list[int] = []

    def derive(*sources: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made.append(len(sources))
        return (sum(sources, torch.zeros(())), sources[0] if sources else torch.ones(2))

    derived = Derived(Counts)  # type: ignore[arg-type]
    first, second = torch.ones(4), torch.full((4,), 2.0)
    for _ in range(2):
        for weight in (first, second):
            total, same = derived(derive, weight)
            assert torch.equal(total, weight)
            assert same.data_ptr() != weight.data_ptr()
    assert made == [1, 1]
    derived(derive)
    derived(derive)
    assert made == [1, 1, 0]


@pytest.mark.slow
def test_a_variant_says_which_moves_it_contains() -> None:
    variants = VariantBuilder(target_of(NET), {})
    variants.prepare([[]], moves=EVERY)
    variant = variants.with_kernels([], "kernels", EVERY)
    assert variant is not None
    assert variant.moves == {
        MoveKind.FOLD_BATCH_NORM: 3,
        MoveKind.CHANNELS_LAST: 3,
        MoveKind.FUSE_EPILOGUES: 1,
    }
    assert variant.expected == {"packed product": 3, DERIVED: 1}
    assert variant.label == "the model and moves (fold batch norm, channels last, fuse epilogues)"
    assert variants.with_kernels([], "kernels", [MoveKind.MERGE_PRODUCTS]) is None


@pytest.mark.slow
def test_the_first_child_process_also_leaves_one_move_out(monkeypatch: pytest.MonkeyPatch) -> None:
    variants, exports = VariantBuilder(target_of(NET), {}), list[str]()
    monkeypatch.setattr(variants, "_progress", exports.append)
    variants.prepare([[]], moves=EVERY)
    whole = variants.with_kernels([], "kernels", EVERY)
    assert whole is not None and len(whole.moves) == 3
    rest = [[kind for kind in whole.moves if kind is not one] for one in whole.moves]
    variants.prepare_moves([], "kernels", rest)
    found = [variants.with_kernels([], "kernels", kinds) for kinds in rest]
    assert exports.count("exporting the model") == 1
    apart = VariantBuilder(target_of(NET), {})
    assert [v and v.solution.sources for v in found] == [
        (made := apart.with_kernels([], "kernels", kinds)) and made.solution.sources for kinds in rest
    ]


def judged_moves(source: str, place: Path, gains: Mapping[str, float]) -> tuple[dict[str, bool], str]:
    """Stitch a model with the moves that its profile proposes; its artifact is in `place`.

    Args:
        gains: what a text in the units adds to the speed of the model. Answers and counts are the real
            referee's.

    Returns:
        Whether each proposed move was kept, and the report.
    """
    target = target_of(source, place.name)
    device = DeviceSpec(kind="cpu", name="test", architecture="x86-64", threads=2)
    profile = profile_target(target, device, Roofline(bandwidth=2e10, peak_flops={"float32": 1e11}), traces=2)
    settings = RefereeSettings(
        threads=2, quick_seconds=0.2, quick_blocks=2, compile_baseline=False, task_seconds=0
    )

    def speed(solution: Solution) -> float:
        text = "".join(file.content for file in solution.sources if file.path.startswith("units/"))
        return 1.0 + sum(gain for part, gain in gains.items() if part in text)

    with Referee(settings, device=device, cache=place.parent / "cache") as real:
        artifact = stitch(
            target,
            profile,
            {},
            place,
            referee=SteadyReferee(real, speed),
            device=device,
            cache=place.parent,
            moves=moves_for(profile),
            seconds=600,
        )
    assert artifact.proven, artifact.summary
    report = json.loads((place / "report.json").read_text())
    return {move["kind"]: move["kept"] for move in report["moves"]}, (place / "report.md").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("no_slow_parts")
def test_the_plans_moves_are_judged_end_to_end_and_those_that_cost_dropped(tmp_path: Path) -> None:
    """Speeds are given: folding pays, channels-last costs. Answers and counts are the real referee's."""
    kept, text = judged_moves(NET, tmp_path / "net", {"derive(": 0.5, "= _convolution(": -0.3})
    assert list(kept) == ["fold_batch_norm", "channels_last", "fuse_epilogues", "fold_constants"]
    assert [kind for kind, taken in kept.items() if taken] == ["fold_batch_norm"]
    assert "- fold_batch_norm: kept, in 3 places" in text
    assert "- channels_last: dropped, the quick verdict is 1.50x without it and 1.20x with it" in text
    package = import_folder(tmp_path / "net")
    scope: dict[str, Any] = {}
    exec((tmp_path / "net" / "reference_model.py").read_text(), scope)
    model, original = (scope["Model"]().eval() for _ in range(2))
    original.load_state_dict(model.state_dict())
    x = torch.randn(2, 3, 16, 16)
    with torch.inference_mode():
        close(package.optimize(model)(x), original, [x])
