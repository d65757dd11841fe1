"""FlashInfer Trace JSON: what we write, and solutions that others wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentforge.schema import (
    BuildSpec,
    Definition,
    DType,
    ScalarInput,
    Solution,
    SourceFile,
    TensorInput,
    UsageError,
    Workload,
)
from agentforge.schema.flashinfer import reader as fi

REFERENCE = """import torch


class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(n))

    def forward(self, x, eps, *, bias):
        return x * self.w + eps + bias


def get_inputs():
    return {"x": torch.randn(4, 8), "eps": 1e-5, "bias": torch.randn(8)}


def get_init_inputs():
    return [8]
"""

NEW = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(n))

    def forward(self, x, eps, *, bias):
        return x * self.w + (eps + bias)
"""


def definition(**changes: Any) -> Definition:
    fields: dict[str, Any] = {"name": "scale", "op_type": "pointwise", "reference": REFERENCE}
    return Definition(**{**fields, **changes})


def workload(rows: int, columns: int = 8) -> Workload:
    return Workload(
        name=f"{rows}x{columns}",
        inputs=(
            TensorInput(name="x", shape=(rows, columns), dtype=DType.FLOAT32, strides=(2 * columns, 1)),
            ScalarInput(name="eps", value=1e-5),
            TensorInput(name="bias", shape=(columns,), dtype=DType.FLOAT32, keyword=True),
        ),
        weight=3.0,
    )


def result(rows: int, columns: int = 8) -> tuple[TensorInput, ...]:
    return (TensorInput(name="y", shape=(rows, columns), dtype=DType.FLOAT32),)


def written(*rows: int) -> dict[str, Any]:
    return fi.definition_to_flashinfer(definition(), [workload(r) for r in rows], [result(r) for r in rows])


def foreign(data: dict[str, Any]) -> dict[str, Any]:
    """As another program would have written it."""
    return {key: value for key, value in data.items() if key != fi.EXTENSION}


class TestDefinition:
    def test_axes(self) -> None:
        data = written(4, 16)
        assert data["axes"] == {"x_axis0": {"type": "var"}, "d8": {"type": "const", "value": 8}}
        assert data["inputs"]["x"] == {"shape": ["x_axis0", "d8"], "dtype": "float32"}
        assert data["inputs"]["eps"] == {"shape": None, "dtype": "float32"}
        assert data["outputs"]["y"]["shape"] == ["x_axis0", "d8"]
        assert set(written(4)["axes"]) == {"d4", "d8"}

    def test_run_calls_the_model(self) -> None:
        torch = pytest.importorskip("torch")
        space: dict[str, Any] = {}
        exec(written(4)["reference"], space)
        x, bias = torch.randn(4, 8), torch.randn(8)
        torch.manual_seed(0)
        expected = space["Model"](8)(x, 0.5, bias=bias)
        assert torch.equal(space["run"](x, 0.5, bias), expected)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"import_root": "/somewhere"}, "self-contained"),
            ({"reference": "def run(): ..."}, "named run already"),
            ({"reference": "class ("}, "not Python"),
        ],
    )
    def test_what_cannot_be_said(self, changes: dict[str, Any], words: str) -> None:
        with pytest.raises(UsageError, match=words):
            fi.definition_to_flashinfer(definition(**changes), [workload(4)], [result(4)])

    @pytest.mark.parametrize("dtype", [DType.FLOAT64, DType.COMPLEX64, DType.UINT8])
    def test_dtypes_without_a_name(self, dtype: DType) -> None:
        odd = Workload(name="w", inputs=(TensorInput(name="x", shape=(2,), dtype=dtype),))
        with pytest.raises(UsageError, match=dtype.value):
            fi.definition_to_flashinfer(definition(), [odd], [()])

    @pytest.mark.parametrize("value", [None, "gelu"])
    def test_scalars_without_a_name(self, value: str | None) -> None:
        odd = Workload(name="w", inputs=(ScalarInput(name="x", value=value),))
        with pytest.raises(UsageError, match="no number"):
            fi.definition_to_flashinfer(definition(), [odd], [()])

    def test_shapes_that_do_not_fit_together(self) -> None:
        flat = Workload(name="w", inputs=(TensorInput(name="x", shape=(8,), dtype=DType.FLOAT32),))
        with pytest.raises(UsageError, match="same arguments"):
            fi.definition_to_flashinfer(definition(), [workload(4), flat], [(), ()])
        deep = Workload(name="v", inputs=(TensorInput(name="x", shape=(8, 1), dtype=DType.FLOAT32),))
        with pytest.raises(UsageError, match="several ranks"):
            fi.definition_to_flashinfer(definition(), [flat, deep], [(), ()])
        with pytest.raises(UsageError, match="no input has"):
            fi.definition_to_flashinfer(definition(), [workload(4), workload(16)], [result(5), result(17)])


class TestSolution:
    ours = Solution(
        name="fast",
        definition=definition().hash,
        author="playbook",
        spec=BuildSpec(language="cpp", flags=("-O3",)),
        sources=(SourceFile(path="model_new.py", content=NEW), SourceFile(path="k.cpp", content="")),
        parameters={"unroll": 4},
    )

    def _data(self) -> dict[str, Any]:
        return fi.solution_to_flashinfer(self.ours, definition(), workload(4).inputs)

    def test_back(self) -> None:
        data = json.loads(json.dumps(self._data()))
        assert all(s["content"] for s in data["sources"]), "the schema allows no empty file"
        again = fi.solution_from_flashinfer(data, written(4), definition().hash)
        assert again == self.ours
        assert again.hash == self.ours.hash

    def test_its_run_has_the_references_weights(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        torch = pytest.importorskip("torch")
        for source in self._data()["sources"]:
            (tmp_path / source["path"]).write_text(source["content"])
        monkeypatch.syspath_prepend(str(tmp_path))
        try:
            from importlib import import_module

            entered = import_module("agentforge_run").run
            space: dict[str, Any] = {}
            exec(written(4)["reference"], space)
            x, bias = torch.randn(4, 8), torch.randn(8)
            torch.testing.assert_close(entered(x, 0.5, bias), space["run"](x, 0.5, bias))
        finally:
            for name in ("agentforge_run", "agentforge_reference", "model_new"):
                sys.modules.pop(name, None)

    def test_what_the_constructor_is_given_is_drawn_alike(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        torch = pytest.importorskip("torch")
        init = "return [8, random.random() + float(np.random.rand()) + float(torch.rand(()))]"
        head, old, new = "import random\nimport numpy as np\nimport torch", "(self, n):", "(self, n, drawn):"
        reference = REFERENCE.replace("import torch", head, 1).replace(old, new).replace("return [8]", init)
        drawing = definition(reference=reference.replace("x * self.w", "x * self.drawn").replace(
            "        self.w", "        self.drawn = drawn + random.random()\n        self.w"))  # fmt: skip
        changed = drawing.reference.partition("def get_inputs")[0].replace("class Model(", "class ModelNew(")
        ours = self.ours.model_copy(update={"sources": (SourceFile(path="model_new.py", content=changed),)})
        for source in fi.solution_to_flashinfer(ours, drawing, workload(4).inputs)["sources"]:
            (tmp_path / source["path"]).write_text(source["content"])
        monkeypatch.syspath_prepend(str(tmp_path))
        x, bias = torch.ones(4, 8), torch.zeros(8)
        answers: list[Any] = []
        try:
            from importlib import import_module

            answers.append(import_module("agentforge_run").run(x, 0.0, bias))
        finally:
            for name in ("agentforge_run", "agentforge_reference", "model_new"):
                sys.modules.pop(name, None)
        whole = fi.definition_to_flashinfer(drawing, [workload(4)], [result(4)])["reference"]
        for _ in range(2):
            space: dict[str, Any] = {}
            exec(whole, space)
            answers.append(space["run"](x, 0.0, bias))
        assert torch.equal(answers[0], answers[1]) and torch.equal(answers[1], answers[2])

    @pytest.mark.parametrize("in_place", [True, False])
    def test_one_of_theirs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool) -> None:
        torch = pytest.importorskip("torch")
        body = "y.copy_(x + eps + bias)" if in_place else "return x + eps + bias"
        last = ", y" if in_place else ""
        theirs = {
            "name": "z",
            "definition": "scale",
            "author": "someone",
            "spec": {
                "language": "python",
                "target_hardware": ["cpu"],
                "entry_point": "theirs.py::go",
                "destination_passing_style": in_place,
            },
            "sources": [{"path": "theirs.py", "content": f"def go(x, eps, bias{last}):\n    {body}\n"}],
        }
        ours = fi.solution_from_flashinfer(theirs, written(4, 16), "d")
        for source in ours.sources:
            (tmp_path / source.path).write_text(source.content)
        monkeypatch.syspath_prepend(str(tmp_path))
        try:
            from importlib import import_module

            model = import_module("agentforge_model").ModelNew()
            x, bias = torch.randn(16, 8), torch.randn(8)
            assert torch.equal(model(x, 0.5, bias), x + 0.5 + bias)
        finally:
            for name in ("agentforge_model", "theirs"):
                sys.modules.pop(name, None)

    def test_outputs_may_have_sizes_that_no_input_has(self) -> None:
        theirs = foreign(self._data())
        theirs["spec"] = {**theirs["spec"], "destination_passing_style": True}
        about: dict[str, Any] = {
            "axes": {
                "M": {"type": "var"},
                "N": {"type": "var"},
                "half": {"type": "expr", "expression": "M // 2"},
            },
            "inputs": {"x": {"shape": ["M"], "dtype": "float32"}},
            "outputs": {"y": {"shape": ["M", "half", "N"], "dtype": "float32"}},
        }
        ours = fi.solution_from_flashinfer(theirs, about, "d", {"M": 6, "N": 5})
        assert "torch.empty([x.shape[0], 3, 5]," in ours.source("agentforge_model.py")
        with pytest.raises(UsageError, match="output y has an axis half that no input has"):
            fi.solution_from_flashinfer(theirs, about, "d")
        with pytest.raises(UsageError, match="axis N has the size None"):
            fi.solution_from_flashinfer(theirs, about, "d", {"M": 6})

    def test_one_of_theirs_with_several_languages(self) -> None:
        theirs = foreign(self._data())
        spec = {k: v for k, v in theirs["spec"].items() if k != "language"}
        theirs["spec"] = {**spec, "languages": ["cute_dsl"], "binding": None}
        ours = fi.solution_from_flashinfer(theirs, written(4), "d")
        assert (ours.spec.language, ours.spec.entry_point) == ("python", "agentforge_model.py::ModelNew")

    def test_another_calling_convention(self) -> None:
        theirs = foreign(self._data())
        theirs["spec"] = {**theirs["spec"], "language": "cuda", "entry_point": "kernel.cu::run"}
        with pytest.raises(UsageError, match="bound by tvm-ffi: only PyTorch's binding is read, and Python"):
            fi.solution_from_flashinfer(theirs, written(4), "d")
        theirs["spec"]["entry_point"] = "kernel.rs::run"
        with pytest.raises(UsageError, match=r"entered in kernel\.rs \(cuda\), which is not read"):
            fi.solution_from_flashinfer(theirs, written(4), "d")

    @pytest.mark.parametrize("drop", ["name", "author", "spec", "sources"])
    def test_a_field_is_missing(self, drop: str) -> None:
        theirs = foreign(self._data())
        del theirs[drop]
        with pytest.raises(UsageError, match=drop):
            fi.solution_from_flashinfer(theirs, written(4), "d")

    @pytest.mark.parametrize(
        "changes",
        [{"spec": []}, {"spec": {"languages": []}}, {"sources": [{"path": "../x", "content": "y"}]}],
    )
    def test_rubbish(self, changes: dict[str, Any]) -> None:
        with pytest.raises(UsageError, match="solution fast"):
            fi.solution_from_flashinfer(foreign(self._data()) | changes, written(4), "d")
