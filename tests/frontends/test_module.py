from __future__ import annotations

import sys

import pytest
import torch

from agentforge.frontends import FrontendOptions, load_target
from agentforge.frontends.input_options import parse_inputs
from agentforge.frontends.module import ModuleClass, parse_init
from agentforge.languages import write_solution
from agentforge.problems.kernelbench import load_problem
from agentforge.problems.reference_solution import reference_solution
from agentforge.schema import Definition, TargetError, UsageError
from agentforge.stitch.files import as_solution, stitched_files
from agentforge.testing.frontend import FrontendContract

SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, dim=8, *, deep=False):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(dim, dim))
        self.deep = deep

    def forward(self, x, mask=None):
        y = self.inner(x)
        return y if mask is None else y * mask

class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()
        self.table = nn.Embedding(100, 4)

    def forward(self, ids):
        return self.table(ids)
"""

WIDER = """
class Wider(Net):
    def __init__(self):
        super().__init__()
        self.more = nn.Linear(2, 2)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(SOURCE)
    return path


class TestContract(FrontendContract):
    def make(self):
        return ModuleClass()

    def good(self, folder):
        path = folder / "nets.py"
        path.write_text(SOURCE)
        return f"{path}:Net", FrontendOptions(input_shapes=("2,8",))

    def missing(self, folder):
        return f"{folder / 'nowhere.py'}:Net"


@pytest.mark.slow
def test_state_dict_keys_are_the_users_own(file):
    target = load_target(f"{file}:Net", FrontendOptions(input_shapes=("2,8",), dtype="bfloat16"))
    model = load_problem(target.definition).build(0)
    assert list(model.state_dict()) == ["inner.0.weight", "inner.0.bias"]
    assert {str(p.dtype) for p in model.parameters()} == {"torch.bfloat16"}
    assert target.workloads[0].inputs[0].dtype == "bfloat16"


def test_a_solution_that_derives_from_the_class_is_cast_too(file, tmp_path, monkeypatch):
    options = FrontendOptions(input_shapes=("2,8",), dtype="bfloat16")
    file.write_text(SOURCE + WIDER)
    target = load_target(f"{file}:Net", options)
    files = stitched_files(target, "eager", [], {}, {})
    write_solution(as_solution(target, "net", files), tmp_path / "artifact")
    monkeypatch.syspath_prepend(str(tmp_path / "artifact"))
    for name in ("model_new", "agentforge_stitch"):
        sys.modules.pop(name, None)
    import model_new

    (x,), _ = load_problem(target.definition).inputs(0)
    assert model_new.ModelNew()(x).dtype is torch.bfloat16
    wider = load_problem(target.definition).module.Wider()
    assert {p.dtype for p in wider.parameters()} == {torch.float32}
    for name in ("model_new", "agentforge_stitch"):
        sys.modules.pop(name, None)


def test_a_solution_that_contains_the_class_is_cast_too(file):
    file.write_text(SOURCE.partition("class Model")[0])
    target = load_target(f"{file}:Net", FrontendOptions(input_shapes=("2,8",), dtype="bfloat16"))
    source = reference_solution(target.definition).sources[0].content
    module = load_problem(Definition(name="solution", op_type="model", reference=source)).module
    assert {p.dtype for p in module.ModelNew().parameters()} == {torch.bfloat16}


def test_a_class_named_model_with_old_style_super_casts(file):
    options = FrontendOptions(input_shapes=("2,3",), input_dtypes=("int64",), dtype="bfloat16")
    target = load_target(f"{file}:Model", options)
    assert target.workloads[0].inputs[0].dtype == "int64"


def test_a_class_may_use_another_class_named_model(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(SOURCE.replace("nn.Sequential(nn.Linear(dim, dim))", "Model()"))
    options = FrontendOptions(input_shapes=("x=2,3",), input_dtypes=("int64",), dtype="bfloat16")
    target = load_target(f"{path}:Net", options)
    model = load_problem(target.definition).build(0)
    assert type(model).__name__ == "Net"
    assert {name: str(p.dtype) for name, p in model.named_parameters()} == {
        "inner.table.weight": "torch.bfloat16"
    }


def test_keyword_inputs_and_constructor_arguments(file):
    options = FrontendOptions(input_shapes=("2,4", "mask=2,4"), init_args='{"dim": 4, "deep": true}')
    target = load_target(f"{file}:Net", options)
    assert [(i.name, i.keyword) for i in target.workloads[0].inputs] == [("x", True), ("mask", True)]
    assert load_problem(target.definition).build(0).deep is True


def test_an_integer_that_is_too_large_is_said_to_be_drawn(tmp_path):
    path = tmp_path / "small.py"
    path.write_text(SOURCE.replace("nn.Embedding(100, 4)", "nn.Embedding(3, 4)"))
    options = FrontendOptions(input_shapes=("64,3",), input_dtypes=("int64",))
    with pytest.raises(TargetError, match=r"IndexError: .* from 0 to 15: if it needs others, give"):
        load_target(f"{path}:Model", options)


def test_dtypes_align_with_shapes_and_the_last_repeats():
    inputs = parse_inputs(
        FrontendOptions(input_shapes=("1", "2", "a=3", "b="), input_dtypes=("int64", "bool"))
    )
    assert [(i.keyword, i.shape, i.dtype.value) for i in inputs] == [
        ("", (1,), "int64"),
        ("", (2,), "bool"),
        ("a", (3,), "bool"),
        ("b", (), "bool"),
    ]


def test_an_input_by_name_has_its_own_dtype():
    inputs = parse_inputs(FrontendOptions(inputs=("a=2,3:int64", "b=4"), dtype="bfloat16"))
    assert [(i.keyword, i.shape, i.dtype.value, i.chosen) for i in inputs] == [
        ("a", (2, 3), "int64", True),
        ("b", (4,), "bfloat16", False),
    ]


@pytest.mark.parametrize("text", ["1,2", "a", "a=1,x", "=3", "a:int64"])
def test_an_input_that_does_not_read(text):
    with pytest.raises(UsageError, match=r"--input .* does not read"):
        parse_inputs(FrontendOptions(inputs=(text,)))


def test_a_dtype_without_its_shape_is_not_ignored():
    with pytest.raises(UsageError, match="each --input-dtype goes with one --input-shape"):
        parse_inputs(FrontendOptions(inputs=("a=2,3",), input_dtypes=("int64",)))


@pytest.mark.parametrize("text", ["1,x", "1;2", "9a=1", "-1,2"])
def test_a_shape_that_does_not_read(text):
    with pytest.raises(UsageError, match="does not read"):
        parse_inputs(FrontendOptions(input_shapes=(text,)))


@pytest.mark.parametrize("text", ["{", "3", '"a"'])
def test_init_args_that_do_not_read(text):
    with pytest.raises(UsageError, match="JSON"):
        parse_init(text)


def test_constructor_arguments_may_be_infinite(file):
    file.write_text(SOURCE.replace("self.deep = deep", "self.deep = min(deep)"))
    options = FrontendOptions(input_shapes=("2,8",), init_args='{"dim": 8, "deep": [Infinity, -Infinity]}')
    target = load_target(f"{file}:Net", options)
    assert load_problem(target.definition).build(0).deep == -float("inf")


@pytest.mark.parametrize("shape", ["4,64", "4", ""])
def test_complex_inputs_have_an_imaginary_part(shape):
    (drawn,) = parse_inputs(FrontendOptions(inputs=(f"x={shape}:complex64",)))
    value = eval(drawn.expression, {"torch": torch})
    assert (value.shape, value.dtype) == (drawn.shape, torch.complex64)
    assert value.imag.abs().max() > 0


def test_only_the_top_level_defines_a_class(file):
    options = FrontendOptions(input_shapes=("2,8",))
    file.write_text(SOURCE + "\n    class Inner(nn.Module):\n        pass\n\nif True:\n    Alias = Net\n")
    with pytest.raises(TargetError, match="defines no Inner; its classes are: Net, Model"):
        load_target(f"{file}:Inner", options)
    assert load_target(f"{file}:Alias", options).workloads


def test_bad_input(file):
    with pytest.raises(TargetError, match="its classes are: Net, Model"):
        load_target(f"{file}:Missing", FrontendOptions(input_shapes=("1",)))
    with pytest.raises(UsageError, match="--input-shape"):
        load_target(f"{file}:Net")
    with pytest.raises(UsageError, match="--dtype"):
        load_target(f"{file}:Net", FrontendOptions(input_shapes=("1",), dtype="float99"))
    with pytest.raises(TargetError, match="forward raises"):
        load_target(f"{file}:Net", FrontendOptions(input_shapes=("2,9",)))
