"""An artifact computes what the captured code says, so other code is another model."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import torch

from agentforge.problems.kernelbench import import_source
from agentforge.stitch.runtime.code import differ, fingerprint, plain_text, unlike, values

from .making import Stitched, same, stitch_in_process
from .test_runtime import both, engaged

SOURCE = '''
import functools

import torch
import torch.nn as nn


def decorated(function):
    @functools.wraps(function)
    def called(*args, **kwargs):
        return function(*args, **kwargs)

    return called


def shifted(x):
    return x + 1.0


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up = Norm(), nn.Linear(8, 8)

    @decorated
    def forward(self, x, scale=2.0):
        """Says nothing."""
        return self.gate(torch.relu(self.up(self.norm(x)))) * scale

    def gate(self, x):
        return torch.sigmoid(shifted(x)) * x if x.dtype in {torch.float32} else x


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return []
'''


@pytest.fixture(scope="module")
def stitched(tmp_path_factory: pytest.TempPathFactory) -> Stitched:
    return stitch_in_process(SOURCE, tmp_path_factory.mktemp("code"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.relu(", "torch.nn.functional.gelu("),
        ("1e-6", "1e-5"),
        ("torch.sigmoid(", "torch.tanh("),
        ("x + 1.0", "x + 2.0"),
        ("scale=2.0", "scale=3.0"),
    ],
    ids=["forward", "forward of a part", "method", "function", "default"],
)
def test_a_model_whose_code_was_edited_is_refused(stitched: Stitched, old: str, new: str) -> None:
    edited = import_source(SOURCE.replace(old, new), f"edited_{abs(hash(new))}").Model().eval()
    with pytest.raises(ValueError, match=r"other code in its forward.*`agentforge optimize` again"):
        stitched.package.optimize(edited)


def test_comments_and_other_code_of_the_file_do_not_matter(stitched: Stitched) -> None:
    source = SOURCE.replace('"""Says nothing."""', "# says\n        # nothing").replace(
        "return []", "return ()"
    )
    model = import_source(source, "commented").Model().eval()
    args, kwargs = stitched.inputs(0)
    assert engaged(stitched, stitched.package.optimize(model), args, kwargs)[1]


def test_a_file_with_annotations_in_its_forward_is_the_captured_model(tmp_path: Path) -> None:
    source = SOURCE.replace(
        "        return self.gate(",
        "        def twice(t: torch.Tensor) -> torch.Tensor:\n            return t + t\n\n"
        "        x = twice(x)\n        return self.gate(",
    )
    made = stitch_in_process(source, tmp_path / "annotated")
    spec = importlib.util.spec_from_file_location("annotated_model", made.folder / "model_new.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert type(module.ModelNew().eval())._agentforge_unit.class_name == "Model"


READS = """
import functools
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import tanh as squash

FACTOR = 8
SEEN = 0
DEVICE = "cpu"
HERE = os.path.abspath(".")


def scaled(by):
    def scale(x):
        return x * by

    return scale


def part(eps):
    class Part(nn.Module):
        def forward(self, x):
            return x + eps

    return Part


Inner = part(0.25)


class Model(nn.Module):
    scale = 2.0
    calls = 0

    def __init__(self):
        super().__init__()
        self.weight, self.inner = nn.Parameter(torch.rand(8) + 0.5), Inner()
        self.shift = lambda x: x + 1.0
        self.times = scaled(3.0)
        self.gelu = functools.partial(F.gelu, approximate="tanh")

    def forward(self, x):
        global SEEN
        SEEN += 1
        type(self).calls += 1
        x = self.gelu(self.times(self.shift(self.inner(x) * self.weight)))
        return squash(x.to(DEVICE) * self.scale * FACTOR) if HERE else x


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> Stitched:
    return stitch_in_process(READS, tmp_path_factory.mktemp("reads"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("FACTOR = 8", "FACTOR = 4", "its forward reads FACTOR in Model.forward: 4, not the captured 8"),
        ("scale = 2.0", "scale = 3.0", r"its forward reads self\.scale in Model\.forward: 3\.0"),
        ("tanh as squash", "sigmoid as squash", "squash in Model.forward: sigmoid, not the captured tanh"),
        ("part(0.25)", "part(0.5)", "submodule 'inner' reads eps in .*: 0.5, not the captured 0.25"),
        ("x + 1.0", "x + 2.0", "attribute shift is <lambda>"),
        ("scaled(3.0)", "scaled(4.0)", "attribute times is scale<"),
        ('="tanh"', '="none"', r"attribute gelu is partial\(gelu, 'none' for \['approximate'\]\), not"),
    ],
    ids=["global", "class", "function", "closure", "lambda", "inner function", "partial"],
)
def test_another_value_that_the_code_reads_is_refused(reads: Stitched, old: str, new: str, said: str) -> None:
    edited = import_source(READS.replace(old, new), f"reads_{abs(hash(new))}").Model().eval()
    with pytest.raises(ValueError, match=said):
        reads.package.optimize(edited)


def test_what_the_code_assigns_and_where_it_lies_do_not_matter(reads: Stitched) -> None:
    source = READS.replace('"cpu"', '"meta"').replace('"."', '"elsewhere"').replace("SEEN = 0", "SEEN = 5")
    module = import_source(source.replace("calls = 0", "calls = 7"), "reads_elsewhere")
    model = reads.package.optimize(module.Model().eval())
    assert engaged(reads, model, *reads.inputs(0))[1]
    assert values(module.Model) == {
        "FACTOR in Model.forward": "8",
        "squash in Model.forward": "tanh",
        "self.scale in Model.forward": "2.0",
    }


def test_hashes_of_code_count_only_between_equal_versions_of_python() -> None:
    one, two = (plain_text(function) for function in (lambda x: x + 1, lambda x: x + 2))
    assert unlike(one, two) and not unlike(one, one)
    assert not unlike(one, "<lambda>"), "of an earlier version of AgentForge"
    assert not unlike(one, two.replace("<lambda><", "<lambda><9."))
    assert unlike(one, "relu") and unlike("1", "2") and unlike("", "1")


@pytest.mark.slow
def test_a_class_that_was_pickled_by_value_has_the_same_code_in_another_process(tmp_path: Path) -> None:
    module = import_source(READS, "pickled_by_value")
    cloudpickle.register_pickle_by_value(module)
    try:
        (tmp_path / "class").write_bytes(cloudpickle.dumps(module.Model))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    command = (
        "import pathlib, pickle, sys; from agentforge.stitch.runtime.code import *; "
        "cls = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes()); model = cls(); "
        "print(fingerprint(cls), values(cls), plain_text(model.shift), plain_text(model.times))"
    )
    arguments = [sys.executable, "-c", command, str(tmp_path / "class")]
    found = subprocess.run(arguments, capture_output=True, text=True, check=True)
    cls, model = module.Model, module.Model()
    texts = (fingerprint(cls), values(cls), plain_text(model.shift), plain_text(model.times))
    assert all(texts)
    assert found.stdout.strip() == " ".join(map(str, texts))


def test_torch_s_own_modules_and_other_versions_of_python_are_not_compared() -> None:
    assert fingerprint(torch.nn.Linear) == fingerprint(torch.nn.MultiheadAttention) == ""
    assert differ("3.11.7.0:a", "3.11.7.0:b")
    assert not differ("3.11.7.0:a", "3.12.0.0:b")
    assert not differ("", "")


def test_a_class_of_the_users_with_the_name_of_one_of_torchs_is_refused(stitched: Stitched) -> None:
    class Linear(torch.nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input) * 2

    Linear.__qualname__ = "Linear"
    assert differ(fingerprint(Linear), "") and differ("", fingerprint(Linear))
    model = stitched.model()
    model.up.__class__ = Linear
    with pytest.raises(ValueError, match="'up', a Linear, has other code"):
        stitched.package.optimize(model)


@pytest.mark.parametrize("name", ["Model", "Norm"])
@pytest.mark.parametrize("calls", [0, 2])
def test_a_forward_that_is_replaced_later_runs(
    stitched: Stitched, name: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, optimized = both(stitched)
    args, kwargs = stitched.inputs(0)
    assert all(engaged(stitched, optimized, args, kwargs)[1] for _ in range(calls))
    cls: Any = getattr(stitched.problem.module, name)
    with monkeypatch.context() as patched:
        patched.setattr(cls, "forward", lambda self, x: x * 3)
        output, ran = engaged(stitched, optimized, args, kwargs)
        assert not ran
        with torch.no_grad():
            assert same(output, original(*args, **kwargs))
    assert engaged(stitched, optimized, args, kwargs)[1]


@pytest.mark.slow
def test_torch_compile_sees_that_a_forward_was_replaced(
    stitched: Stitched, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, optimized = both(stitched)
    args, kwargs = stitched.inputs(0)
    assert engaged(stitched, torch.compile(optimized, fullgraph=True, backend="aot_eager"), args, kwargs)[1]
    monkeypatch.setattr(stitched.problem.module.Norm, "forward", lambda self, x: x * 3)
    torch._dynamo.reset()  # compiled code guards the class's old forward no further
    output, ran = engaged(stitched, torch.compile(optimized, backend="aot_eager"), args, kwargs)
    assert not ran
    with torch.no_grad():
        assert same(output, original(*args, **kwargs))
