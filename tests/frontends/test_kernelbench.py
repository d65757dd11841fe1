from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from agentforge.frontends import FrontendOptions, load_target
from agentforge.frontends._load import declared_contract
from agentforge.frontends.kernelbench import KernelBenchFile
from agentforge.frontends.probe import probe
from agentforge.problems.kernelbench import load_problem
from agentforge.schema import (
    Definition,
    MemoryShortageError,
    TargetError,
    UnsupportedTargetError,
    UsageError,
)
from agentforge.stitch.sources import local_modules
from agentforge.testing.frontend import FrontendContract

HEAD = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        {forward}

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return [8]
"""


def write(folder: Path, forward: str = "return self.fc(x)", **replace: str) -> str:
    source = HEAD.replace("{forward}", forward)
    for old, new in replace.items():
        source = source.replace(old, new)
    path = folder / "problem.py"
    path.write_text(source)
    return str(path)


class TestContract(FrontendContract):
    def make(self):
        return KernelBenchFile()

    def good(self, folder):
        return write(folder), FrontendOptions()

    def missing(self, folder):
        return str(folder / "nowhere.py")


def refuse(spec: str, match: str, **options: str) -> None:
    with pytest.raises(TargetError, match=match) as caught:
        load_target(spec, FrontendOptions(**options))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.slow
def test_a_forward_that_takes_too_long_is_unsupported(tmp_path: Path) -> None:
    slow = write(tmp_path, "__import__('time').sleep(0.3); return self.fc(x)")
    with pytest.raises(UnsupportedTargetError, match=r"one forward takes 0\.3\d? s here, and the limit"):
        load_target(slow, FrontendOptions(longest_s=0.1))
    assert load_target(slow, FrontendOptions(longest_s=5.0)).workloads


@pytest.mark.slow
def test_a_model_that_does_not_fit_is_short_of_memory(tmp_path: Path) -> None:
    large = write(tmp_path, "return self.fc(x).new_zeros(1 << 44)")
    with pytest.raises(MemoryShortageError, match="memory"):
        load_target(large, FrontendOptions())


@pytest.mark.slow
def test_a_model_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentforge.frontends._load._STARTING_S", 3.0)
    hangs = write(tmp_path, "__import__('time').sleep(600)")
    with pytest.raises(UnsupportedTargetError, match="did not run within 4 s"):
        load_target(hangs, FrontendOptions(longest_s=0.1))


LISTED = """
import torch

workloads = ("small", "large", "scaled")


class Model(torch.nn.Module):
    def forward(self, x, scale):
        return x * scale


def get_inputs(workload="small"):
    return [torch.rand(64 if workload == "large" else 4, 8), 3.0 if workload == "scaled" else 2.0]


def get_init_inputs():
    return []
"""


def test_a_file_may_list_several_workloads(tmp_path):
    path = tmp_path / "listed.py"
    path.write_text(LISTED)
    target = load_target(str(path))
    assert [(w.name, w.key, w.inputs[0].shape, w.inputs[1].value) for w in target.workloads] == [
        ("small", "small", (4, 8), 2.0),
        ("large", "large", (64, 8), 2.0),
        ("scaled", "scaled", (4, 8), 3.0),
    ]
    assert target.listed and target.ranged and not target.generation
    assert len({w.hash for w in target.workloads}) == 3
    with pytest.raises(UsageError, match="lists its own workloads: leave out --shapes"):
        load_target(str(path), FrontendOptions(shapes="batch=1..8"))


@pytest.mark.parametrize(("old", "new"), [("workload=", "size="), ('("small", "large", "scaled")', "3")])
def test_other_uses_of_the_name_list_nothing(tmp_path, old, new):
    path = tmp_path / "other.py"
    path.write_text(LISTED.replace(old, new).replace("if workload ==", "if 'small' =="))
    (only,) = load_target(str(path)).workloads
    assert (only.key, only.inputs[0].shape) == ("", (4, 8))


def test_a_workload_that_fails_is_named(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text(LISTED.replace("return x * scale", "return x.view(4, 8) * scale"))
    refuse(str(path), "fails, workload large: forward raises RuntimeError")


def test_inputs_are_described(tmp_path):
    target = load_target(write(tmp_path))
    (x,) = target.workloads[0].inputs
    assert (x.name, x.shape, x.dtype, x.strides) == ("x", (4, 8), "float32", None)
    assert x.distribution.kind == "normal"
    assert target.notes == ()
    assert target.definition.import_root is None


def test_several_inputs_scalars_and_lists(tmp_path):
    path = tmp_path / "many.py"
    path.write_text(
        textwrap.dedent("""
        import torch
        class Model(torch.nn.Module):
            def forward(self, ids, tables, scale, flag=None):
                return tables[0][ids] * scale + tables[1][ids]
        def get_inputs():
            return [torch.randint(0, 7, (5,)), [torch.randn(7, 2), torch.randn(7, 2)], 2.0, None]
        def get_init_inputs():
            return []
        """)
    )
    inputs = load_target(str(path)).workloads[0].inputs
    assert [i.name for i in inputs] == ["ids", "tables.0", "tables.1", "scale", "flag"]
    assert inputs[0].distribution.kind == "integers"
    assert inputs[0].distribution.b <= 7


def test_sibling_modules_are_found(tmp_path):
    (tmp_path / "helper_of_problem.py").write_text("def twice(x):\n    return x * 2\n")
    head = {"import torch\n": "import torch\nfrom helper_of_problem import twice\n"}
    spec = write(tmp_path, "return twice(self.fc(x))", **head)
    target = load_target(spec)
    assert target.definition.import_root == str(tmp_path)


def test_a_script_gets_no_arguments(tmp_path):
    parsed = "import argparse\np = argparse.ArgumentParser()\np.add_argument('{}', type=int, default=8)\n"
    parsed += "dim = p.parse_args().dim\n"
    head = {"import torch\n": "import torch\n" + parsed.format("--dim"), "return [8]": "return [dim]"}
    assert load_target(write(tmp_path, **head)).workloads
    head = {"import torch\n": "import torch\n" + parsed.format("dim")}
    refuse(write(tmp_path, **head), "SystemExit: 2; it gets no arguments: give them defaults")


def test_a_function_may_import_what_lies_beside_the_model(tmp_path):
    (tmp_path / "late_helper.py").write_text("def twice(x):\n    return x * 2\n")
    late = "from late_helper import twice\n"
    for line in (
        "        super().__init__()\n",
        "    return [torch.randn(4, 8)]\n",
        "        return self.fc(x)\n",
    ):
        spaces = line[: len(line) - len(line.lstrip())]
        assert load_target(write(tmp_path, **{line: spaces + late + line})).definition.import_root == str(
            tmp_path
        )


def test_a_file_beside_the_source_is_not_there(tmp_path):
    opened = "super().__init__(); open(__import__('os').path.dirname(__file__) + '/weights.pt')"
    spec = write(tmp_path, **{"super().__init__()": opened})
    refuse(spec, r"FileNotFoundError.*give the model itself to agentforge.optimize\(model, inputs\)")


@pytest.mark.parametrize(
    "imported",
    ["from .layers import twice", "from package_of_model.layers import twice", "from . import layers"],
)
def test_a_module_of_a_package(tmp_path, imported):
    folder = tmp_path / "package_of_model" / "models"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").touch()
    (folder.parent / "layers.py").write_text("def twice(x):\n    return x * 2\n")
    imported = imported.replace("from .", "from ..")
    head = {"import torch\n": f"import torch; 'ü'; {imported}\n"}
    name = "layers.twice" if imported.endswith("layers") else "twice"
    target = load_target(write(folder, f"return {name}(self.fc(x))", **head))
    assert target.definition.import_root == str(tmp_path)
    assert target.workloads[0].name == "4x8"


def test_a_relative_import_without_a_package(tmp_path):
    (tmp_path / "layers_without_package.py").write_text("def twice(x):\n    return x * 2\n")
    tried = "import torch\ntry:\n    from .layers_without_package import twice\n"
    refuse(write(tmp_path, **{"import torch\n": tried + "finally:\n    pass\n"}), r"put an __init__\.py into")
    tried += "except ImportError:\n    from layers_without_package import twice\n"
    assert load_target(write(tmp_path, "return twice(self.fc(x))", **{"import torch\n": tried})).workloads


def imports(name: str) -> dict[str, str]:
    return {"import torch\n": f"import torch\nfrom {name} import twice\n"}


TWICE = "def twice(x):\n    return x * 2\n"


def test_a_package_that_python_has_on_its_path_is_found(tmp_path, monkeypatch):
    """As after an editable installation, and with PYTHONPATH: other processes do not see its folder."""
    (tmp_path / "src" / "package_in_src").mkdir(parents=True)
    (tmp_path / "src" / "package_in_src" / "__init__.py").write_text(TWICE)
    (tmp_path / "scripts").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    spec = write(tmp_path / "scripts", "return twice(self.fc(x))", **imports("package_in_src"))
    assert load_target(spec).definition.import_root == str(tmp_path / "src")
    (tmp_path / "scripts" / "beside_it.py").write_text(TWICE)
    both = {"import torch\n": "import torch, beside_it\nfrom package_in_src import twice\n"}
    with pytest.raises(UsageError, match=r"beside_it from .*scripts and package_in_src from .*src, and"):
        load_target(write(tmp_path / "scripts", "return twice(self.fc(x))", **both))


def test_a_package_below_the_working_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "models_here").mkdir()
    (tmp_path / "models_here" / "layers.py").write_text(TWICE)
    spec = write(tmp_path / "models_here", "return twice(self.fc(x))", **imports("models_here.layers"))
    refuse(spec, "does not import")
    monkeypatch.chdir(tmp_path)
    target = load_target(spec)
    assert target.definition.import_root == str(tmp_path)
    assert local_modules(target.definition.reference, tmp_path) == {"models_here/layers.py": TWICE}


@pytest.mark.parametrize(
    ("part", "said"), [("import torch\n", "does not import"), ("        return", "forward raises")]
)
def test_a_long_exception_is_shortened(tmp_path, part, said):
    spaces = part[: len(part) - len(part.lstrip())]
    raised = f"{spaces}raise ValueError('long' * 9999)\n"
    spec = write(tmp_path, "return x", **{part: raised + part})
    with pytest.raises(
        TargetError, match=rf"{said}.* ValueError: .*long \.\.\. \(39996 characters\); run it"
    ) as e:
        load_target(spec)
    assert len(str(e.value)) < 500


@pytest.mark.parametrize("layer", ["nn.LazyLinear(8)", "nn.LazyBatchNorm1d(affine=False)"])
def test_a_lazy_module_is_refused_unless_its_constructor_runs_it(layer):
    lazy = HEAD.replace("nn.Linear(dim, dim)", layer).replace("{forward}", "return self.fc(x)")
    with pytest.raises(TargetError, match="run one forward in its constructor, or use modules with sizes"):
        probed(lazy)
    assert probed(lazy.replace(layer, f"{layer}; self.fc(torch.ones(2, 8))")) == []


def test_prints_do_not_reach_our_output(tmp_path, capfd):
    load_target(write(tmp_path, "print('noise'); return self.fc(x)"))
    assert "noise" not in capfd.readouterr().out


def test_state_kept_between_calls_is_a_note(tmp_path):
    spec = write(tmp_path, "self.n = getattr(self, 'n', 0) + 1; return self.fc(x) * self.n")
    assert any("keeps state" in n for n in load_target(spec).notes)


def test_an_output_that_ignores_the_input_is_a_note(tmp_path):
    assert any(
        "does not depend" in n for n in load_target(write(tmp_path, "return self.fc.weight * 2")).notes
    )


def test_an_output_whose_size_depends_on_the_values_is_no_fault(tmp_path):
    assert not load_target(write(tmp_path, "return x[x > 0]")).notes


def drawing(inputs: str, init: str = "return [8]") -> str:
    """A source with other inputs and constructor arguments."""
    source = HEAD.replace("{forward}", "return self.fc(x)").replace("dim=8", "dim=8, scale=1.0")
    source = source.replace("torch.randn(4, 8)", inputs).replace("return [8]", init)
    return f"import random\nimport numpy as np\n{source}"


def test_inputs_that_never_change_are_a_note():
    (note,) = probed(drawing("torch.ones(4, 8)"))
    assert note.startswith("get_inputs() gives the same values under every seed; whether the output depends")


@pytest.mark.parametrize(
    "drawn", ["torch.from_numpy(np.random.rand(4, 8)).float()", "torch.ones(4, 8) * random.random()"]
)
def test_inputs_may_be_drawn_by_other_generators_than_torchs(drawn):
    assert probed(drawing(drawn)) == []


def test_draws_that_no_seed_decides_are_refused():
    unseeded = "np.random.default_rng().random()"
    with pytest.raises(TargetError, match=r"get_inputs\(\) gives other values under the same seed; draw"):
        probed(drawing(f"torch.ones(4, 8) * {unseeded}"))
    with pytest.raises(TargetError, match=r"get_init_inputs\(\) gives other values under the same seed"):
        probed(drawing("torch.randn(4, 8)", f"return [8, {unseeded}]"))


@pytest.mark.parametrize(
    "drawn", ["torch.rand(1)", "__import__('random').random()", "__import__('numpy').random.rand()"]
)
def test_a_forward_that_draws_is_random(drawn):
    with pytest.raises(TargetError, match="its output is random"):
        probed(HEAD.replace("{forward}", f"return self.fc(x) * {drawn}"))


def probed(source: str) -> list[str]:
    """Notes of a model that is probed in this process."""
    definition = Definition(name="odd", op_type="model", reference=source)
    payload = {"definition": definition.model_dump(mode="json"), "device": "cpu"}
    return probe(payload, lambda line: None)["notes"]


@pytest.mark.parametrize("place", ["import torch\n", "super().__init__()\n"])
def test_a_model_that_was_not_downloaded_is_unsupported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    hub = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path))
    load = "import huggingface_hub; huggingface_hub.hf_hub_download('nobody/nothing', 'config.json')"
    indent = " " * 8 * place.startswith("super")
    source = HEAD.replace("{forward}", "return self.fc(x)").replace(place, f"{place}{indent}{load}\n", 1)
    with pytest.raises(UnsupportedTargetError, match="run `hf download nobody/nothing`"):
        probed(source)


@pytest.mark.parametrize(
    ("kind", "made", "remedy"),
    [
        ("quantized", "torch.quantize_per_tensor(y, 0.1, 0, torch.quint8)", "output.dequantize()"),
        ("sparse", "y.relu().to_sparse()", "output.to_dense()"),
        ("nested", "torch.nested.nested_tensor([y, y[:2]])", "torch.nested.to_padded_tensor"),
        ("nested", "torch.nested.nested_tensor([y, y[:2]], layout=torch.jagged)", "to_padded_tensor"),
    ],
)
def test_tensors_that_are_not_dense_are_refused_in_a_sentence(kind, made, remedy):
    source = HEAD.replace("{forward}", f"y = self.fc(x); return x, {made}")
    with pytest.raises(UnsupportedTargetError, match=rf"forward returns a {kind} tensor.*{remedy}"):
        probed(source)
    given = HEAD.replace("{forward}", "return x").replace(
        "return [torch.randn(4, 8)]", f"y = torch.randn(4, 8)\n    return [{made}]"
    )
    with pytest.raises(UnsupportedTargetError, match=rf"get_inputs\(\) returns a {kind} tensor"):
        probed(given)


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ("{'y': y, 'seen': {1, 2}}", r"out\['seen'\] is set, not a tensor; return tensors, numbers, strings"),
        ("(y, [Kept()])", r"out\[1\]\[0\] is Kept, not a tensor; return tensors, numbers, strings"),
        ("(y, y.to(torch.uint16))", r"out\[1\] has the type torch.uint16, which is .*; convert it$"),
        ("(y, DynamicCache())", r"is DynamicCache, .*; set model.config.use_cache = False, .* generate="),
    ],
)
def test_outputs_that_the_referee_cannot_compare_are_refused_before_a_search(returned, says):
    source = HEAD.replace("{forward}", f"y = self.fc(x); return {returned}").replace(
        "super().__init__()", "super().__init__(); self.config = Kept()"
    )
    source += "\nclass Kept:\n    use_cache = True\n\nclass DynamicCache:\n    pass\n"
    with pytest.raises(TargetError, match=says):
        probed(source)
    if "Cache" in returned:
        with pytest.raises(TargetError, match="is DynamicCache, not a tensor; return tensors, numbers"):
            probed(source.replace("use_cache = True", "use_cache = False"))


def test_numbers_none_and_text_beside_a_tensor_are_no_fault():
    returned = "return {'y': self.fc(x), 'n': (1, 2.5, None, 'text', True)}"
    assert probed(HEAD.replace("{forward}", returned)) == []


def test_a_gradient_inside_forward_needs_enable_grad():
    lines = [
        "x = x.clone().requires_grad_()",
        "energy = self.fc(x).square().sum()",
        "return -torch.autograd.grad(energy, x)[0]",
    ]
    with pytest.raises(TargetError, match=r"raises RuntimeError: .*; .* wrap .* torch\.enable_grad\(\)"):
        probed(HEAD.replace("{forward}", "; ".join(lines)))
    wrapped = f"with torch.enable_grad(): {'; '.join(lines)}"
    assert probed(HEAD.replace("{forward}", wrapped)) == []


def test_an_output_in_8_bit_floats_is_no_fault():
    assert probed(HEAD.replace("{forward}", "return self.fc(x).to(torch.float8_e4m3fn)")) == []


def test_dropout_in_train_mode_is_refused(tmp_path):
    refuse(write(tmp_path, "return nn.functional.dropout(self.fc(x), training=True)"), "random")


def test_dropout_module_is_fine_in_eval(tmp_path):
    assert load_target(write(tmp_path, "return nn.Dropout(0.5).eval()(self.fc(x))")).notes == ()


@pytest.mark.parametrize("options", [{"input_shapes": ("1,2",)}, {"dtype": "bfloat16"}])
def test_options_of_another_frontend(tmp_path, options):
    with pytest.raises(UsageError, match="get_inputs"):
        load_target(write(tmp_path), FrontendOptions(**options))


def test_bad_input(tmp_path):
    refuse(str(tmp_path), "not a file")
    refuse(write(tmp_path, "return 1 +"), r"not valid Python \(invalid syntax \(\w+\.py, line \d+\)\)")
    refuse(
        write(tmp_path, **{"import torch\n": "import torch, not_a_module\n"}), "does not import.*not_a_module"
    )
    refuse(write(tmp_path, **{"class Model": "class Other"}), "no class Model")
    refuse(write(tmp_path, **{"def get_inputs": "def other"}), r"no get_inputs")


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    path = Path(write(tmp_path))
    plain = load_target(str(path)).definition
    path.write_text(path.read_text(), encoding="utf-8-sig")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert load_target(str(path)).definition == plain


@pytest.mark.slow
def test_bad_models(tmp_path):
    refuse(write(tmp_path, "raise ValueError('too odd')"), "forward raises ValueError: too odd")
    refuse(write(tmp_path, "return 'text'"), "returns no tensor")
    refuse(write(tmp_path, **{"return [8]": "return [8, 9, 10]"}), "constructor raises TypeError")
    refuse(write(tmp_path, "import os; os._exit(3)"), "crashed.*exit code 3")
    refuse(write(tmp_path, "import os; os.kill(os.getpid(), 11)"), "SIGSEGV")


def test_more_memory_than_there_is(tmp_path):
    refuse(write(tmp_path, "return torch.empty(1 << 45) + 1"), "more memory")


def test_a_file_may_ask_for_gradients_and_other_types(tmp_path):
    path = Path(write(tmp_path))
    path.write_text(path.read_text() + "\ndifferentiable = True\ndtypes = ['bfloat16', 'float64']\n")
    definition = load_target(str(path), FrontendOptions()).definition
    assert definition.differentiable
    assert definition.dtypes == ("bfloat16", "float64")
    path.write_text(path.read_text().replace("bfloat16", "float12"))
    with pytest.raises(TargetError, match="float12"):
        load_target(str(path), FrontendOptions())


def test_other_values_of_these_names_say_nothing():
    assert declared_contract("differentiable = 1\ndtypes = [torch.float32]\ndtypes = 3") == {}


CONFIGURED = """
from typing import NamedTuple

import torch

class Config(NamedTuple):
    dim: int

class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = torch.nn.Linear(config.dim, config.dim)

    def forward(self, x):
        return self.fc(x)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return [Config(8)]
"""


def test_a_model_makes_its_config_object_by_itself(tmp_path: Path) -> None:
    (tmp_path / "configured.py").write_text(CONFIGURED)
    target = load_target(str(tmp_path / "configured.py"))
    problem = load_problem(target.definition)
    assert problem.get_init_inputs() == []
    assert problem.model_class().fc.in_features == 8
    assert problem.model_class(problem.module.Config(3)).fc.in_features == 3
    assert "returns a Config" in target.notes[0]
