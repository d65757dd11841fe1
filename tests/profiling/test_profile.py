"""The whole way: a model file, a child process, a ranked profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.devices import DeviceSpec, Roofline
from agentforge.problems.kernelbench import load_problem
from agentforge.profiling import profile_target
from agentforge.profiling.speed_of_light import least_time
from agentforge.schema import (
    Definition,
    MemoryShortageError,
    Profile,
    Target,
    TargetError,
    TensorInput,
    Workload,
)
from tests.profiling.captured import capture_units

DEVICE = DeviceSpec(kind="cpu", name="test", architecture="none", threads=1, cache_bytes=(1 << 15, 1 << 21))
ROOFLINE = Roofline(bandwidth=1e10, peak_flops={"float32": 5e10}, call_overhead_s=1e-6)
MODELS = Path(__file__).with_name("models.py").read_text()


def target(expression: str, inputs: str, extra: str = "") -> Target:
    source = f"{MODELS}\n{extra}\nModel = {expression}\n\ndef get_inputs():\n    return {inputs}\n"
    source += "\ndef get_init_inputs():\n    return []\n"
    definition = Definition(name="small", op_type="model", reference=source)
    return Target(
        name="small",
        origin="small.py",
        definition=definition,
        workloads=(Workload(name="w", source="reference"),),
        notes=("a note of the frontend",),
    )


@pytest.fixture(scope="module")
def llama() -> tuple[Target, Profile, list[str]]:
    lines: list[str] = []
    made = target("LlamaBlock", "[torch.randn(4, 16, 32)]")
    return made, profile_target(made, DEVICE, ROOFLINE, progress=lines.append, traces=5, ablation=True), lines


@pytest.mark.slow
def test_bottlenecks_are_ranked_by_gain(llama):
    _, profile, _ = llama
    gains = [b.gain_s for b in profile.bottlenecks]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 0
    assert profile.traces >= 5
    assert profile.notes[0] == "a note of the frontend"


def test_vendor_calls_are_left_alone(llama):
    _, profile, _ = llama
    for bottleneck in profile.bottlenecks:
        vendor = bottleneck.definition.op_type in ("gemm", "attention")
        assert bottleneck.optimizable is not vendor
        assert not (vendor and bottleneck.gain_s)


@pytest.mark.slow
def test_a_product_with_one_row_may_be_a_kernels():
    extra = """
class Two(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(64, 48), nn.Linear(48, 32, bias=False))
"""
    for rows, expected in ((1, True), (2, False)):
        profile = profile_target(target("Two", f"[torch.randn({rows}, 64)]", extra), DEVICE, ROOFLINE)
        assert [b.optimizable for b in profile.bottlenecks] == [expected, expected]


def test_equal_call_sites_are_one_bottleneck(llama):
    _, profile, _ = llama
    (rope,) = [b for b in profile.bottlenecks if b.definition.op_type == "rope"]
    assert len(rope.call_sites) == 2
    assert rope.workloads[0].weight == 2
    assert rope.time_s == pytest.approx(sum(c.time_s for c in rope.call_sites))


def test_call_sites_are_found_again_by_name(llama):
    made, profile, _ = llama
    problem = load_problem(made.definition)
    args, kwargs = problem.inputs(0)
    (unit,) = capture_units(problem.build(0), args, kwargs).units
    names = {n.name for n in unit.graph_module.graph.nodes}
    for site in profile.call_sites:
        assert set(site.nodes) <= names
        assert {i.name for i in site.inputs} <= names
    assert len({s.name for s in profile.call_sites}) == len(profile.call_sites)


def test_a_call_sites_inputs_are_the_definitions_in_order(llama):
    _, profile, _ = llama
    for bottleneck in profile.bottlenecks:
        for site in bottleneck.call_sites:
            specs = bottleneck.workloads[0].inputs
            assert [i.shape for i in site.inputs] == [s.shape for s in specs]


def test_possible_merges_take_the_place_of_what_they_cover(llama):
    _, profile, _ = llama
    assert profile.merges
    assert all(merge.optimizable for merge in profile.merges)
    for merge in profile.merges:
        merged = profile.merged([merge.definition.hash])
        nodes = [node for b in merged.bottlenecks for site in b.call_sites for node in site.unit_nodes]
        assert len(nodes) == len(set(nodes))
        assert set(nodes) >= {n for b in profile.bottlenecks for s in b.call_sites for n in s.unit_nodes}
        assert merge in merged.bottlenecks
        assert merged.merged([merge.definition.hash]) is merged
        assert len({s.name for s in merged.call_sites}) == len(merged.call_sites)


def test_progress_is_told(llama):
    steps = [line for line in llama[2] if line.startswith("step ")]
    assert list(dict.fromkeys(line[:12] for line in steps)) == [f"step {n} of 4:" for n in (1, 2, 3, 4)]
    assert steps[1] == "step 2 of 4: exporting the graph"


def test_the_largest_share_is_checked_by_ablation(llama):
    _, profile, _ = llama
    assert profile.bottlenecks[0].ablation_share is not None


@pytest.mark.slow
def test_a_part_that_does_not_export_is_timed_by_its_module():
    extra = """
class Odd(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum().item() > 1e9 else torch.sort(x)[0]

class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.odd = Gpt2Block(), Odd()

    def forward(self, x):
        return self.odd(self.block(x))
"""
    profile = profile_target(target("Mixed", "[torch.randn(2, 16, 32)]", extra), DEVICE, ROOFLINE)
    assert {s.unit for s in profile.call_sites if s.nodes} == {"block"}
    (rest,) = [s for s in profile.call_sites if not s.nodes and s.module_path == "odd"]
    assert rest.time_s > 0
    assert any("in parts" in n for n in profile.notes)
    assert {s.name for s in profile.without_kernel(0.0)} >= {rest.name}


@pytest.mark.slow
def test_a_workload_in_parts_is_timed_beside_one_that_is_whole():
    extra = """
class Sometimes(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 32)

    def forward(self, x):
        y = self.fc(x)
        return y * 0 if len(x) == 1 and y.sum().item() > 1e9 else torch.sort(y)[0]
"""
    made = target("Sometimes", "[torch.randn(4, 32)]", extra)
    workloads = tuple(
        Workload(name=f"w{n}", weight=n, inputs=(TensorInput(name="x", shape=(n, 32), dtype="float32"),))
        for n in (4, 1)
    )
    profile = profile_target(made.model_copy(update={"workloads": workloads}), DEVICE, ROOFLINE)
    assert {s.unit for s in profile.call_sites if s.nodes} == {"@w4", "fc@w1"}
    (rest,) = [s for s in profile.call_sites if not s.nodes]
    assert rest.name == "model (not exported)"
    assert rest.time_s > 0


@pytest.mark.slow
def test_one_listed_workload_has_the_speed_of_light_of_its_file() -> None:
    made = target("LlamaBlock", "[torch.randn(4, 16, 32)]")
    only = made.workloads[0].model_copy(update={"key": "only"})
    source = made.definition.reference.replace("get_inputs()", "get_inputs(workload)")
    definition = made.definition.model_copy(update={"reference": source})
    listed = made.model_copy(update={"definition": definition, "workloads": (only,)})
    profiles = (profile_target(each, DEVICE, ROOFLINE) for each in (made, listed))
    expected, found = (least_time(profile, DEVICE, ROOFLINE) for profile in profiles)
    assert found == expected is not None


def test_a_graph_that_is_not_eagers_program_has_a_note():
    extra = """
class Branches(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) * x if torch.compiler.is_exporting() else F.silu(x)
"""
    inputs = "[torch.randn(1, 32).expand(16, 32)]"
    made = target("Branches", inputs, extra)
    given = TensorInput(name="x", shape=(16, 32), dtype="float32", strides=(0, 1))
    workload = made.workloads[0].model_copy(update={"inputs": (given,)})
    profile = profile_target(made.model_copy(update={"workloads": (workload,)}), DEVICE, ROOFLINE)
    assert any("that the eager model does not run (mul, sigmoid)" in note for note in profile.notes)
    assert any("input x is expanded" in note for note in profile.notes)


@pytest.mark.slow
def test_numbers_and_sparse_tensors_do_not_end_the_profile():
    extra = """
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.register_buffer("sparse", torch.eye(64).to_sparse_csr())

    def forward(self, x):
        return (self.sparse @ self.norm(x / x.abs().max().item()).T).T
"""
    profile = profile_target(target("Odd", "[torch.randn(32, 64)]", extra), DEVICE, ROOFLINE)
    assert "norm" in {b.definition.op_type for b in profile.bottlenecks}
    assert {o for s in profile.without_kernel(0.0) for o in s.operators} >= {"aten.item.default"}
    assert not any("CannotExtract" in n for n in profile.notes)


def test_a_cache_with_few_rows_is_not_filled():
    profile = profile_target(target("Cache", "[torch.randn(1, 8)]"), DEVICE, ROOFLINE)
    assert profile.traces >= 5


def test_a_cache_among_the_arguments_is_not_filled():
    extra = """
class Step(nn.Module):
    def forward(self, x, rows, position):
        rows.index_copy_(0, position, x * 2)
        position += 1
        return torch.relu(rows + x).sum(0)
"""
    inputs = "[torch.randn(1, 8), torch.zeros(3, 8), torch.zeros(1, dtype=torch.int64)]"
    profile = profile_target(target("Step", inputs, extra), DEVICE, ROOFLINE)
    assert profile.traces >= 5


def test_inputs_may_be_computed_by_a_module():
    inputs = "[EMBED(torch.arange(4)), {'more': EMBED.weight * 2}]"
    extra = """
EMBED = nn.Embedding(10, 8)

class Adds(nn.Module):
    def forward(self, x, more):
        return torch.relu(x + more["more"][:4])
"""
    profile = profile_target(target("Adds", inputs, extra), DEVICE, ROOFLINE)
    assert profile.bottlenecks and profile.bottlenecks[0].optimizable
    assert profile.bottlenecks[0].ablation_share is None  # it was not asked for


def test_a_file_that_sets_the_number_of_threads_changes_no_measurement():
    extra = """
torch.set_num_threads(3)

class Checks(nn.Module):
    def forward(self, x):
        assert torch.get_num_threads() == 1
        return torch.relu(x) * 2
"""
    profile = profile_target(target("Checks", "[torch.randn(4, 8)]", extra), DEVICE, ROOFLINE)
    assert "the model's file sets 3 threads for torch; all that is measured has 1" in profile.notes


def test_lookups_are_gathers_however_they_are_written():
    extra = """
class Looks(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(50, 64))

    def forward(self, i, x):
        return F.embedding(i, self.table) + self.table[i] + x.gather(1, i.view(-1, 1).expand(-1, 64))
"""
    inputs = "[torch.arange(40), torch.randn(40, 64)]"
    profile = profile_target(target("Looks", inputs, extra), DEVICE, ROOFLINE)
    kinds = [site.kinds for site in profile.call_sites]
    assert sum(one.get("gather", 0) for one in kinds) == 3 and not any("embedding" in one for one in kinds)


def test_a_model_that_fails_is_one_sentence():
    with pytest.raises(TargetError, match="small cannot be profiled"):
        profile_target(target("LlamaBlock", "[torch.randn(4, 16, 33)]"), DEVICE, ROOFLINE)


def test_a_model_that_does_not_fit_is_short_of_memory():
    large = target("LlamaBlock", "[torch.randn(4, 16, 32).new_zeros(1 << 44)]")
    with pytest.raises(MemoryShortageError, match="small cannot be profiled: it needs more memory"):
        profile_target(large, DEVICE, ROOFLINE)


@pytest.mark.timing
def test_time_is_attributed_and_shares_hold():
    extra = """
class Wide(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(256, 2048), nn.GELU(), nn.LayerNorm(2048))
"""
    made = target("Wide", "[torch.randn(1024, 256)]", extra)
    profile = profile_target(made, DEVICE, ROOFLINE, traces=15, ablation=True)
    assert 0.7 < profile.attributed < 1.4
    top = profile.bottlenecks[0]
    assert top.ablation_share == pytest.approx(top.share, abs=0.15)
