"""GPU MODE, robust-kbench and MultiKernelBench: small tasks of each form become problems that run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentforge.campaigns.suites import Selection, selected
from agentforge.campaigns.suites._base import other_hardware
from agentforge.frontends import load_target
from agentforge.problems.kernelbench import load_problem
from agentforge.referee import EvaluationRequest
from agentforge.schema import Definition, SuiteProblem, UnsupportedTargetError, UsageError
from agentforge.testing.suite import SuiteContract
from tests.referee.judging import quick_referee, solution_of


def opened(problem: SuiteProblem) -> Any:
    """The problem's source, imported as the referee's workers do."""
    return load_problem(Definition(name="x", op_type="model", reference=problem.source))


UTILS = """from __future__ import annotations
import torch


def make_match_reference(reference):
    def checked(data, output):
        return torch.allclose(reference(data), output), ""
    return checked
"""
REFERENCE = """from utils import make_match_reference
from task import (
    input_t,
    output_t,
)
import torch


def ref_kernel(data: input_t) -> output_t:
    x, out, weights, config = data
    out[...] = x * weights["w"].cuda() * config["factor"]
    return out


def generate_input(size: int, seed: int) -> input_t:
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.randn(size, device='cuda', generator=gen)
    return x, torch.empty(size, device="cuda:0"), {"w": torch.ones(size, device="cuda")}, {"factor": 3}


check_implementation = make_match_reference(ref_kernel)
"""
TASK = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
lang: "py"
tests:
  - {"size": 5, "seed": 1}
  - {"size": 6, "seed": 2}
benchmarks:
  - {"size": 64, "seed": 3}
ranking_by: "geom"
"""


def write_task(folder: Path, task: str = TASK, reference: str = REFERENCE) -> Path:
    folder.mkdir(parents=True)
    (folder / "task.yml").write_text(task)
    (folder / "reference.py").write_text(reference)
    (folder / "task.py").write_text("from typing import Any\ninput_t = Any\noutput_t = Any\n")
    (folder.parent / "utils.py").write_text(UTILS)
    return folder


class TestGpuMode(SuiteContract):
    name = "gpu-mode"

    def good(self, folder: Path) -> str:
        write_task(folder / "pmpp" / "scale_py")
        write_task(folder / "other" / "several", TASK + "multi_gpu: true\n")
        return str(folder)

    def missing(self, folder: Path) -> str:
        return str(folder / "nowhere")

    def half_there(self, folder: Path) -> str:
        write_task(folder / "pmpp" / "scale_py")
        (folder / "pmpp" / "utils.py").unlink()
        return str(folder)

    def broken_in_part(self, folder: Path) -> str:
        write_task(folder / "pmpp" / "scale_py")
        write_task(folder / "pmpp" / "torn", TASK.replace('{"size": 64, "seed": 3}', "1"))
        return str(folder)

    def test_tests_and_benchmarks_are_problems(self, tmp_path: Path) -> None:
        found = selected(self.open(self.good(tmp_path)), Selection(only="pmpp/*"))
        assert [(p.id, p.definition) for p in found] == [
            ("pmpp/scale_py/tests", ""),
            ("pmpp/scale_py/benchmarks", ""),
        ]
        assert found[0].group == "pmpp"
        assert [w["number"] for w in found[0].native["workloads"]] == [1, 2]
        assert found[1].native == {
            "kind": "benchmarks",
            "spec": {"size": 64, "seed": 3},
            "ranking_by": "geom",
            "checker": True,
            "number": 1,
            "of": 1,
        }
        single = selected(self.open(str(tmp_path)), Selection(only="pmpp/*/tests/*"))
        assert [(p.id, p.definition) for p in single] == [
            ("pmpp/scale_py/tests/1", "pmpp/scale_py/tests"),
            ("pmpp/scale_py/tests/2", "pmpp/scale_py/tests"),
        ]
        assert [(p.native["number"], p.native["of"]) for p in single] == [(1, 2), (2, 2)]

    def test_all_tests_in_one_problem_have_their_own_data(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        task = TASK.replace('{"size": 6, "seed": 2}', '{"size": 5, "seed": 2, "factor": 7}')
        either = REFERENCE.replace("seed: int", "seed: int, factor: int = 3").replace('": 3}', '": factor}')
        write_task(tmp_path / "t" / "x", task, either)
        problem, *_ = selected(self.open(str(tmp_path)), Selection())
        loaded = opened(problem)
        assert loaded.workloads == ("1", "2")
        model = loaded.build(0)
        for workload, factor in (("1", 3), ("2", 7)):
            args, _ = loaded.of(workload).inputs(7)
            assert (args[0], tuple(args[1].shape)) == (workload, (5,))
            assert torch.equal(model(*args), args[1] * factor)
            assert loaded.module.native_check(model, args, args[1] * factor) == (True, "")
            assert loaded.module.native_check(model, args, args[1] * 2) == (False, "")

    def test_the_last_benchmark_ranks_unless_the_task_says_otherwise(self, tmp_path: Path) -> None:
        unsaid = TASK.replace('ranking_by: "geom"\n', "")
        write_task(tmp_path / "t" / "x", unsaid, REFERENCE.partition("check_implementation")[0])
        found = selected(self.open(str(tmp_path)), Selection())
        assert {(p.native["ranking_by"], "checker" in p.native) for p in found} == {("last", False)}
        assert not hasattr(opened(found[0]).module, "native_check")

    def test_the_tasks_checker_gets_the_data_and_the_output(self, tmp_path: Path) -> None:
        pytest.importorskip("torch")
        problem, *_ = selected(self.open(self.good(tmp_path)), Selection(only="pmpp/*/tests/*"))
        loaded = opened(problem)
        args, _ = loaded.inputs(7)
        model = loaded.build(0)
        assert loaded.module.native_check(model, args, args[0] * 3) == (True, "")
        assert loaded.module.native_check(model, args, args[0] * 2) == (False, "")

    def test_data_with_objects_is_unsupported(self, tmp_path: Path) -> None:
        write_task(tmp_path / "t", reference=REFERENCE.replace('{"factor": 3}', "torch.nn.Identity()"))
        problem, *_ = selected(self.open(str(tmp_path)), Selection(only="*/tests/*"))
        with pytest.raises(UnsupportedTargetError, match=r"its data has objects \(Identity\)"):
            opened(problem).build(0)

    def test_several_gpus_and_other_languages_are_unsupported(self, tmp_path: Path) -> None:
        found = selected(self.open(self.good(tmp_path)), Selection(only="other/*"))
        assert {p.unsupported for p in found} == {"it needs several GPUs"}
        write_task(tmp_path / "c" / "cu", TASK.replace('lang: "py"', "lang: cu"))
        write_task(tmp_path / "c" / "own", reference="x = 1\n")
        write_task(tmp_path / "c" / "amd", reference=f"from aiter.ops import gemm\n{REFERENCE}")
        reasons = {p.unsupported for p in selected(self.open(str(tmp_path / "c")), Selection())}
        assert reasons == {
            "its submissions are in cu, not in Python",
            "its reference has no function generate_input",
            "it imports aiter, which needs an AMD GPU",
        }

    def test_the_tensors_of_the_data_are_inputs_and_the_rest_is_constant(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        problem, *_ = selected(self.open(self.good(tmp_path)), Selection(only="pmpp/*/tests/*"))
        loaded = opened(problem)
        args, _ = loaded.inputs(7)
        assert [tuple(a.shape) for a in args] == [(5,), (5,), (5,)]
        assert torch.equal(args[1].cpu(), torch.zeros(5)), "memory that nobody wrote is no input"
        assert torch.equal(loaded.build(0)(*args), args[0] * 3)

    def test_each_draw_is_another_one(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        problem, *_ = selected(self.open(self.good(tmp_path)), Selection(only="pmpp/*/tests/*"))
        first, again, other = (opened(problem).inputs(seed)[0][0] for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)

    def test_booleans_are_the_strings_that_kernelbot_hands_on(self, tmp_path: Path) -> None:
        """So trimul's data for `nomask: False` are those for True: "False" is true."""
        torch = pytest.importorskip("torch")
        task = TASK.replace('"size": 64', '"size": 64, "ones": False')
        either = REFERENCE.replace("seed: int", "seed: int, ones: bool = True")
        either = either.replace("    return x,", "    return x if not ones else torch.ones(size),")
        write_task(tmp_path / "t" / "x", task, either)
        *_, problem = selected(self.open(str(tmp_path)), Selection())
        assert problem.native["spec"] == {"size": 64, "ones": "False", "seed": 3}
        (drawn, *_), _ = opened(problem).inputs(7)
        assert torch.equal(drawn.cpu(), torch.ones(64))

    def test_data_that_the_seed_is_added_to_keeps_its_digits(self, tmp_path: Path) -> None:
        """GPU MODE's sort_py does that; in float32 a seed of 2^31 would leave equal numbers."""
        pytest.importorskip("torch")
        shifted = REFERENCE.replace("generator=gen)", "generator=gen) + seed")
        write_task(tmp_path / "t" / "x", reference=shifted)
        problem, *_ = selected(self.open(str(tmp_path)), Selection(only="*/tests/*"))
        assert [opened(problem).inputs(seed)[0][0].unique().numel() for seed in (1, 2, 3)] == [5, 5, 5]

    def test_it_loads_as_a_target(self, tmp_path: Path) -> None:
        self.good(tmp_path)
        for only, found in (("pmpp/*/tests/*", [5]), ("pmpp/*/tests", [5, 6])):
            problem, *_ = selected(self.open(str(tmp_path)), Selection(only=only))
            (tmp_path / problem.file).write_text(problem.source)
            target = load_target(str(tmp_path / problem.file))
            sizes = [[i.shape for i in w.inputs if i.type == "tensor"] for w in target.workloads]
            assert sizes == [[(n,), (n,), (n,)] for n in found]

    @pytest.mark.parametrize(
        ("task", "words"),
        [
            ("a: [", "is not YAML"),
            ("files: []\n", "no tests and no benchmarks"),
            (f"{TASK}made: 2026-13-45\n", "is not YAML .month must be in 1..12"),
            (f"{TASK}made: !!bool x\n", "is not YAML"),
            (f"{TASK}made: !!timestamp x\n", "is not YAML"),
            (f"{TASK}made: {'[' * 5000}\n", "is not YAML"),
            (TASK.replace("../utils.py", "\\0"), "cannot be read .embedded null"),
            ("tests: 5\n", "tests is no list"),
            (f"{TASK}tests: {{size: 5}}\n", "tests is no list"),
            ("tests: [1]\nfiles:\n- {name: reference.py, source: reference.py}\n", "tests 1 is no mapping"),
            ("tests: [{size: 1}]\nfiles: [x]\n", "no list of files"),
            ("tests: [{size: 1}]\nfiles: []\n", "names no reference.py"),
            (f"{TASK}ranking_by: worst\n", "ranks by 'worst': write one of last, mean, geom"),
        ],
    )
    def test_a_wrong_task_is_one_clear_sentence(self, tmp_path: Path, task: str, words: str) -> None:
        write_task(tmp_path / "t" / "x", task)
        with pytest.raises(UsageError, match=words) as caught:
            selected(self.open(str(tmp_path)), Selection())
        assert "\n" not in str(caught.value)


FUNCTION = """import torch


def forward_fn(x, weight):
    return x * weight


class Model(torch.nn.Module):
    def __init__(self, width: int, method: str = "ones"):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((width,), 1.0 if method == "ones" else 2.0))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight)


def get_inputs(rows: int = 2, width: int = 4):
    return [torch.randn(rows, width, requires_grad=True)]
"""


def configurations(**changes: Any) -> dict[str, Any]:
    parts = {"input": [{"rows": 3}], "init": [{"method": "twos"}], "shared": [{"width": 4}]}
    single = {f"single_{part}_configs": value for part, value in parts.items()}
    return {**single, "multi_input_configs": [{}], **changes}


def write_function(folder: Path, direction: str, config: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"func_{direction}.py").write_text(FUNCTION)
    (folder / f"config_{direction}.json").write_text(json.dumps(config))


class TestRobustKBench(SuiteContract):
    name = "robust-kbench"

    def good(self, folder: Path) -> str:
        several = {
            "multi_input_configs": [{"rows": 3}, {"rows": 5}],
            "multi_init_configs": [{"method": "twos"}],
            "multi_shared_configs": [{"width": 4}, {"width": 8}],
        }
        write_function(folder / "tasks" / "scale", "forward", configurations())
        write_function(folder / "tasks" / "scale", "backward", configurations(**several))
        return str(folder)

    def missing(self, folder: Path) -> str:
        return str(folder / "nowhere")

    def half_there(self, folder: Path) -> str:
        self.good(folder)
        for direction in ("forward", "backward"):
            (folder / "tasks" / "scale" / f"func_{direction}.py").unlink()
        return str(folder)

    def broken_in_part(self, folder: Path) -> str:
        where = self.good(folder)
        (folder / "tasks" / "scale" / "config_forward.json").write_text("{")
        return where

    @pytest.mark.parametrize("empty", [False, True])
    def test_a_task_without_configurations_is_unsupported(self, tmp_path: Path, empty: bool) -> None:
        self.good(tmp_path)
        listed = tmp_path / "tasks" / "scale" / "config_backward.json"
        if empty:
            none = {"single_input_configs": [], "multi_input_configs": []}
            listed.write_text(json.dumps(configurations(**none)))
        else:
            listed.unlink()
        forward, backward = selected(self.open(str(tmp_path)), Selection())
        assert (forward.id, forward.unsupported) == ("scale/forward", "")
        missing = "its configurations, config_backward.json, are missing"
        assert (backward.id, backward.unsupported) == ("scale/backward", missing)

    def test_the_text_of_one_configuration_is_that_of_earlier_versions(self, tmp_path: Path) -> None:
        (forward,) = selected(self.open(self.good(tmp_path)), Selection(only="scale/forward"))
        init, inputs = (forward.native[kind] for kind in ("init", "inputs"))
        below = f"""
_their_inputs = get_inputs


def get_init_inputs():
    return {init}


def get_inputs():
    drawn = _their_inputs(**{inputs})
"""
        assert below in forward.source and "_CALL" not in forward.source

    def test_each_configuration_once(self, tmp_path: Path) -> None:
        whole = selected(self.open(self.good(tmp_path)), Selection())
        assert [p.id for p in whole] == ["scale/forward", "scale/backward"]
        found = selected(self.open(str(tmp_path)), Selection(only="*/backward/*"))
        assert [p.id for p in found] == [f"scale/backward/{n}" for n in range(1, 5)]
        assert [p.native["inputs"] for p in found] == [
            {"rows": 3, "width": 4},
            {"rows": 3, "width": 8},
            {"rows": 5, "width": 4},
            {"rows": 5, "width": 8},
        ]

    def test_a_configuration_gives_arguments_of_constructor_and_inputs(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        *_, last = selected(self.open(self.good(tmp_path)), Selection(only="*/backward/*"))
        loaded = opened(last)
        (x,), _ = loaded.inputs(0)
        assert tuple(x.shape) == (5, 8)
        assert not x.requires_grad
        assert torch.equal(loaded.build(0)(x), x * 2)

    def test_workloads_of_one_problem_have_their_own_constructor_arguments(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        _, whole = selected(self.open(self.good(tmp_path)), Selection())
        loaded = opened(whole)
        assert loaded.workloads == ("1", "2", "3", "4")
        model = loaded.build(0)
        assert {k: tuple(v.shape) for k, v in model.state_dict().items()} == {
            "of.1.weight": (4,), "of.2.weight": (8,), "of.3.weight": (4,), "of.4.weight": (8,)
        }  # fmt: skip
        for workload, shape in zip(loaded.workloads, [(3, 4), (3, 8), (5, 4), (5, 8)], strict=True):
            (name, x), _ = loaded.of(workload).inputs(0)
            assert (name, tuple(x.shape), x.requires_grad) == (workload, shape, False)
            assert torch.equal(model(name, x), x * 2)

    @pytest.mark.slow
    def test_a_verdict_has_a_figure_for_each_constructor(self, tmp_path: Path) -> None:
        _, whole = selected(self.open(self.good(tmp_path)), Selection())
        (tmp_path / whole.file).write_text(whole.source)
        target = load_target(str(tmp_path / whole.file))
        assert target.definition.differentiable
        with quick_referee(tmp_path / "cache") as referee:
            for wrong in (
                (),
                ("return self.of[workload]", 'return (1 + (workload == "3")) * self.of[workload]'),
            ):
                solution = solution_of(target.definition, *([wrong] if wrong else []))
                found = referee.evaluate(EvaluationRequest(target.definition, target.workloads, solution))
                assert found.passed is not bool(wrong), found.reasons
                if found.performance is not None:
                    assert list(found.performance.workload_speedup) == ["1", "2", "3", "4"]
        assert found.reasons[0].startswith("workload 3: ")

    def test_one_model_is_enough_if_only_inputs_differ(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        inputs = configurations(
            multi_input_configs=[{"rows": 3}, {"rows": 5}], multi_init_configs=[{"method": "twos"}]
        )
        write_function(tmp_path / "scale", "forward", inputs | {"multi_shared_configs": [{"width": 4}]})
        (whole,) = selected(self.open(str(tmp_path)), Selection())
        loaded = opened(whole)
        assert list(loaded.build(0).state_dict()) == ["weight"]
        for workload, rows in zip(loaded.workloads, (3, 5), strict=True):
            (x,), _ = loaded.of(workload).inputs(0)
            assert tuple(x.shape) == (rows, 4)
            assert torch.equal(loaded.build(0)(x), x * 2)

    @pytest.mark.slow
    def test_gradients_are_part_of_a_backward_task(self, tmp_path: Path) -> None:
        forward, backward, *_ = selected(self.open(self.good(tmp_path)), Selection())
        for problem, expected in ((forward, False), (backward, True)):
            (tmp_path / problem.file).write_text(problem.source)
            assert load_target(str(tmp_path / problem.file)).definition.differentiable is expected

    def test_a_wrong_configuration_is_one_clear_sentence(self, tmp_path: Path) -> None:
        write_function(tmp_path / "x", "forward", configurations(single_init_configs={"a": 1}))
        with pytest.raises(UsageError, match="no list of objects"):
            selected(self.open(str(tmp_path)), Selection())


GROUPS = """import json
import os
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, x, shape, weight=None):
        return torch.nn.functional.layer_norm(x, shape, weight=weight)


def get_input_groups():
    with open(os.path.join(os.path.dirname(__file__), "1_norm.json"), "r") as f:
        cases = [json.loads(line) for line in f if line.strip()]
    return [[torch.randn(case["shape"]), case["normalized"], None] for case in cases]


def get_init_inputs():
    return []
"""


class TestMultiKernelBench(SuiteContract):
    name = "multikernelbench"

    def good(self, folder: Path) -> str:
        for category in ("activation", "level1"):
            (folder / "reference" / category).mkdir(parents=True)
        (folder / "reference" / "activation" / "relu.py").write_text("class Model: ...\n")
        (folder / "reference" / "level1" / "1_norm.py").write_text(GROUPS)
        cases = [{"shape": [n, 8], "normalized": [8]} for n in (2, 3)]
        listed = folder / "reference" / "level1" / "1_norm.json"
        listed.write_text("".join(f"{json.dumps(case)}\n" for case in cases))
        return str(folder)

    def missing(self, folder: Path) -> str:
        return str(folder / "nowhere")

    def half_there(self, folder: Path) -> str:
        (folder / "reference").mkdir()
        return str(folder)

    def broken_in_part(self, folder: Path) -> str:
        where = self.good(folder)
        (folder / "reference" / "activation" / "relu.py").write_bytes(b"\xff")
        return where

    def test_a_category_without_problems_is_none(self, tmp_path: Path) -> None:
        suite = self.open(self.good(tmp_path))
        before = selected(suite, Selection())
        (tmp_path / "reference" / "later").mkdir()
        (tmp_path / "reference" / "later" / "__init__.py").touch()
        assert selected(suite, Selection()) == before

    def test_files_and_cases_are_problems_by_category(self, tmp_path: Path) -> None:
        found = selected(self.open(self.good(tmp_path)), Selection())
        assert [(p.id, p.group) for p in found] == [
            ("activation/relu", "activation"),
            ("level1/1_norm", "level1"),
        ]
        cases = selected(self.open(str(tmp_path)), Selection(only="level1/*/*"))
        assert [p.id for p in cases] == ["level1/1_norm/1", "level1/1_norm/2"]

    def test_the_text_of_one_case_is_that_of_earlier_versions(self, tmp_path: Path) -> None:
        case = json.dumps({"shape": [2, 8], "normalized": [8]})
        (first,) = selected(self.open(self.good(tmp_path)), Selection(only="level1/1_norm/1"))
        below = f"""from torch.utils import _pytree

def open(*_, **__):
    return _io.StringIO({case!r})
"""
        assert below in first.source and "_CASE" not in first.source

    def test_a_case_takes_its_tensors_and_keeps_its_lists(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        *_, last = selected(self.open(self.good(tmp_path)), Selection(only="level1/*/*"))
        loaded = opened(last)
        args, _ = loaded.inputs(0)
        assert [tuple(a.shape) for a in args] == [(3, 8)]
        assert torch.equal(loaded.build(0)(*args), torch.nn.functional.layer_norm(args[0], [8]))
        *_, whole = selected(self.open(str(tmp_path)), Selection())
        loaded = opened(whole)
        for workload, rows in (("1", 2), ("2", 3)):
            (name, x), _ = loaded.of(workload).inputs(0)
            assert tuple(x.shape) == (rows, 8)
            assert torch.equal(loaded.build(0)(name, x), torch.nn.functional.layer_norm(x, [8]))

    def test_a_file_that_exhausts_the_parser_stays_for_the_frontend(self) -> None:
        assert other_hardware("-" * 100_000 + "1") == ""

    @pytest.mark.parametrize("name", ["activation/relu.py", "level1/1_norm.py"])
    def test_what_needs_other_hardware_is_unsupported(self, tmp_path: Path, name: str) -> None:
        path = Path(self.good(tmp_path)) / "reference" / name
        path.write_text(f"import torch_npu\n{path.read_text()}")
        found = selected(self.open(str(tmp_path)), Selection(only=f"{name.removesuffix('.py')}*"))
        assert {p.unsupported for p in found} == {"it imports torch_npu, which needs an Ascend NPU"}

    @pytest.mark.parametrize("empty", [False, True])
    def test_cases_that_are_missing_are_unsupported(self, tmp_path: Path, empty: bool) -> None:
        self.good(tmp_path)
        listed = tmp_path / "reference" / "level1" / "1_norm.json"
        if empty:
            listed.write_text("\n")
        else:
            listed.unlink()
        *_, last = selected(self.open(str(tmp_path)), Selection())
        assert (last.id, last.unsupported) == ("level1/1_norm", "its cases, 1_norm.json, are missing")


@pytest.fixture(autouse=True)
def no_modules_left() -> Any:
    """References are imported under a name of their own; none stays."""
    yield
    for name in [n for n in sys.modules if n.startswith("agentforge_reference_")]:
        del sys.modules[name]
