"""FlashInfer Trace JSON: there and back, and JSON that others wrote."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.schema import (
    BuildSpec,
    Correctness,
    Definition,
    Distribution,
    DType,
    EvaluationStatus,
    Evidence,
    ScalarInput,
    Solution,
    SourceFile,
    TensorInput,
    TolerancePolicy,
    UsageError,
    Workload,
)
from agentforge.schema.flashinfer import reader as fi
from tests.store import nouns

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

DTYPES = sorted(set(DType) - {DType.FLOAT64, DType.COMPLEX64, DType.UINT8})


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

    def test_back(self) -> None:
        whole = definition(
            policy="custom-only",
            tolerance=TolerancePolicy(factor=3.0),
            description="about",
            tags=("a", "b"),
            differentiable=True,
        )
        data = fi.definition_to_flashinfer(whole, [workload(4)], [result(4)])
        assert fi.definition_from_flashinfer(json.loads(json.dumps(data)), {}) == whole

    def test_run_calls_the_model(self) -> None:
        torch = pytest.importorskip("torch")
        space: dict[str, Any] = {}
        exec(written(4)["reference"], space)
        x, bias = torch.randn(4, 8), torch.randn(8)
        torch.manual_seed(0)
        expected = space["Model"](8)(x, 0.5, bias=bias)
        assert torch.equal(space["run"](x, 0.5, bias), expected)

    def test_one_of_theirs(self) -> None:
        torch = pytest.importorskip("torch")
        theirs = foreign(written(4, 16))
        theirs["reference"] = "def run(x, eps, bias):\n    return x + eps + bias\n"
        sizes = foreign(fi.workload_to_flashinfer(workload(16), written(4, 16)))
        ours = fi.definition_from_flashinfer(theirs, sizes)
        space: dict[str, Any] = {}
        exec(ours.reference, space)
        x, eps, bias = space["get_inputs"]()
        assert torch.equal(space["Model"](*space["get_init_inputs"]())(x, eps, bias), x + eps + bias)
        assert x.shape == (16, 8)

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

    @pytest.mark.parametrize("drop", ["name", "op_type", "reference", "inputs", "axes"])
    def test_a_field_is_missing(self, drop: str) -> None:
        theirs = foreign(written(4))
        sizes = foreign(fi.workload_to_flashinfer(workload(4), written(4)))
        del theirs[drop]
        with pytest.raises(UsageError, match=drop):
            fi.definition_from_flashinfer(theirs, sizes)


class TestWorkload:
    @settings(deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.lists(st.integers(0, 9), max_size=4),
                st.sampled_from(DTYPES),
                st.floats(-5, 5),
                st.booleans(),
            ),
            min_size=1,
            max_size=5,
        ),
        st.one_of(st.integers(-9, 9), st.floats(-9, 9), st.booleans()),
    )
    def test_there_and_back(self, tensors: list[Any], scalar: float | bool) -> None:
        inputs: list[TensorInput | ScalarInput] = [
            TensorInput(
                name=f"t{i}",
                shape=tuple(shape),
                dtype=dtype,
                distribution=Distribution(kind="uniform", a=low, b=low + 1),
                keyword=by_name,
            )
            for i, (shape, dtype, low, by_name) in enumerate(tensors)
        ]
        inputs.append(ScalarInput(name="s", value=scalar))
        ours = Workload(name="w", inputs=tuple(inputs), weight=2.0)
        data = fi.definition_to_flashinfer(definition(), [ours], [()])
        sizes = json.loads(json.dumps(fi.workload_to_flashinfer(ours, data)))
        assert fi.workload_from_flashinfer(sizes, data) == ours
        theirs = fi.workload_from_flashinfer(foreign(sizes), data)
        assert [(i.name, getattr(i, "shape", None), getattr(i, "dtype", None)) for i in theirs.inputs] == [
            (i.name, getattr(i, "shape", None), getattr(i, "dtype", None)) for i in ours.inputs
        ]

    def test_only_variable_axes_are_bound(self) -> None:
        assert fi.workload_to_flashinfer(workload(16), written(4, 16))["axes"] == {"x_axis0": 16}

    def test_another_constant(self) -> None:
        with pytest.raises(UsageError, match="axis d8"):
            fi.workload_to_flashinfer(workload(4, columns=9), written(4, 16))

    def test_a_tensor_in_a_file(self) -> None:
        sizes = foreign(fi.workload_to_flashinfer(workload(4), written(4)))
        sizes["inputs"]["x"] = {"type": "safetensors", "path": "a", "tensor_key": "b"}
        with pytest.raises(UsageError, match="safetensors"):
            fi.workload_from_flashinfer(sizes, written(4))


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


class TestTrace:
    def _evaluation(self, status: EvaluationStatus = EvaluationStatus.PASSED, **changes: Any) -> Any:
        return nouns.evaluation(status=status, workloads=(workload(4).hash,), **changes)

    def _trace(self, evaluation: Any) -> dict[str, Any]:
        solution = {"name": "fast"}
        return fi.trace_to_flashinfer(evaluation, workload(4), written(4), solution)

    @pytest.mark.parametrize("status", sorted(set(EvaluationStatus) - {EvaluationStatus.HARNESS_ERROR}))
    def test_back(self, status: EvaluationStatus) -> None:
        evaluation = self._evaluation(status)
        trace = json.loads(json.dumps(self._trace(evaluation)))
        assert fi.evaluation_from_flashinfer(trace, "d", "s", workload(4)) == evaluation

    def test_figures(self) -> None:
        correct = Correctness(
            max_absolute_error=1e-6,
            max_relative_error=1e-7,
            tolerance=1e-5,
            reference_error=1e-7,
            checked_calls=9,
        )
        data = self._trace(self._evaluation(correctness=correct))["evaluation"]
        assert data["performance"] == {
            "latency_ms": 1000.0,
            "reference_latency_ms": 2000.0,
            "speedup_factor": 2.0,
        }
        assert data["correctness"]["max_relative_error"] == 1e-7

    def test_only_their_statuses(self) -> None:
        for status in (EvaluationStatus.CRASHED, EvaluationStatus.CHEATING, EvaluationStatus.OUT_OF_MEMORY):
            data = self._trace(self._evaluation(status))["evaluation"]
            assert data["status"] == "RUNTIME_ERROR"
            assert data["correctness"] is data["performance"] is None

    def test_a_figure_of_theirs_is_not_verified(self) -> None:
        trace = self._trace(self._evaluation())
        trace["evaluation"] = foreign(trace["evaluation"])
        ours = fi.evaluation_from_flashinfer(trace, "d", "s", workload(4))
        assert ours.evidence is Evidence.UNVERIFIED
        assert ours.performance is None
        assert {m.name: m.value for m in ours.metrics}["speedup_factor"] == 2.0
        assert ours.timestamp == datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"status": EvaluationStatus.HARNESS_ERROR}, "harness"),
            ({"speedup": None, "evidence": Evidence.UNVERIFIED}, "timing"),
        ],
    )
    def test_what_cannot_be_said(self, changes: dict[str, Any], words: str) -> None:
        with pytest.raises(UsageError, match=words):
            self._trace(self._evaluation(**changes))
        with pytest.raises(UsageError, match="one workload"):
            self._trace(nouns.evaluation())
        with pytest.raises(UsageError, match="workload only"):
            fi.evaluation_from_flashinfer({}, "d", "s", workload(4))

    def test_rubbish(self) -> None:
        trace = self._trace(self._evaluation())
        trace["evaluation"] = foreign(trace["evaluation"]) | {"timestamp": "yesterday"}
        with pytest.raises(UsageError, match="does not follow"):
            fi.evaluation_from_flashinfer(trace, "d", "s", workload(4))
