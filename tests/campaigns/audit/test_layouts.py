"""Layouts: the contract for each, and the peculiarities of each form."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentforge.campaigns.audit import Claim, Submission, layouts, read_submissions
from agentforge.languages import read_solution
from agentforge.schema import UsageError
from agentforge.testing.layout import LayoutContract
from tests.campaigns.suites.test_repositories import write_task
from tests.campaigns.suites.test_traces import definition, workload, write_sol

MODEL = "class Model: ...\n"
MODEL_NEW = "class ModelNew: ...\n"


def files(folder: Path, *names: str, text: str = MODEL_NEW) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def by_id(found: tuple[Submission, ...]) -> dict[str, Submission]:
    return {one.id: one for one in found}


class TestClaims(LayoutContract):
    name = "claims"

    def good(self, folder: Path) -> tuple[Path, None]:
        place = folder / "place"
        files(place, "a.py", "b/model_new.py", "relu.py")
        claims = [
            {"solution": "a.py", "reference": "relu.py", "speedup": 2.5, "policy": "custom-only"},
            {"solution": "b", "reference": "relu.py", "correct": False, "device": "A100"},
            {"solution": "gone.py", "reference": "relu.py"},
            {"id": "outside", "solution": "../elsewhere.py", "reference": "relu.py"},
        ]
        files(folder, "elsewhere.py")
        (place / "claims.json").write_text(json.dumps({"claims": claims}))
        return place, None

    def test_claims_are_read_and_paths_stay_in_the_folder(self, tmp_path: Path) -> None:
        found = by_id(self.read(tmp_path))
        assert found["a"].claim == Claim(speedup=2.5)
        assert found["a"].policy == "custom-only"
        assert found["b"].claim == Claim(correct=False, device="A100")
        assert "gone.py is not in the folder" in found["gone"].unusable
        assert "../elsewhere.py is not in the folder" in found["outside"].unusable

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("{", "is not JSON"),
            ('{"claims": []}', "lists no claims"),
            ("7", "lists no claims"),
            ('[{"solution": "a.py"}]', "claim 1 has no solution or reference"),
            ('[{"solution": "a.py", "reference": "r.py", "fast": 2}]', "unknown key 'fast'"),
            ('[{"solution": "a.py", "reference": "r.py", "speedup": -1}]', "speedup: .* greater than 0"),
            ('[{"solution": "a.py", "reference": "r.py", "policy": "any"}]', "unknown policy"),
            ('[{"solution": "a.py", "reference": "r.py"}, {"solution": "a.py", "reference": "q.py"}]', "two"),
        ],
    )
    def test_bad_claims_are_one_sentence(self, tmp_path: Path, content: str, words: str) -> None:
        (tmp_path / "claims.json").write_text(content)
        with pytest.raises(UsageError, match=words) as caught:
            read_submissions(tmp_path, scratch=tmp_path)
        assert "\n" not in str(caught.value)


class TestKernelBenchRun(LayoutContract):
    name = "kernelbench"

    def good(self, folder: Path) -> tuple[Path, Path]:
        names = (f"level_1_problem_{n}_sample_{s}_kernel.py" for n, s in ((19, 0), (19, 1), (3, 0)))
        files(folder / "run", *names)
        files(folder / "KernelBench", "level1/19_ReLU.py", "level1/2_x.py", text=MODEL)
        result = {"sample_id": 0, "compiled": True, "correctness": True, "runtime": 2.0, "ref_runtime": 5.0}
        other = {**result, "sample_id": 1, "correctness": False, "runtime": -1.0}
        gone = {**result, "metadata": {"hardware": "NVIDIA L40S"}, "ref_runtime": -1.0}
        results = {"19": [result, other], "2": gone}
        (folder / "run" / "eval_results.json").write_text(json.dumps(results))
        return folder / "run", folder / "KernelBench"

    def test_results_are_claims_and_nothing_is_dropped(self, tmp_path: Path) -> None:
        found = by_id(self.read(tmp_path))
        assert found["level1/19/0"].claim == Claim(correct=True, speedup=2.5)
        assert found["level1/19/0"].problem == "level1/19_ReLU"
        assert found["level1/19/1"].claim == Claim(correct=False)
        assert "no such file" in found["level1/2/0"].unusable
        assert found["level1/2/0"].claim == Claim(correct=True, device="NVIDIA L40S")
        assert "has no problem 3 at level 1" in found["level1/3/0"].unusable

    def test_a_run_needs_problems(self, tmp_path: Path) -> None:
        place, _ = self.good(tmp_path)
        with pytest.raises(UsageError, match="add --problems"):
            read_submissions(place, scratch=tmp_path)


def line(level: int = 1, task: int = 1, **changes: Any) -> str:
    entry = {"level_id": level, "task_id": task, "ref_code": MODEL, "custom_code": MODEL_NEW}
    return json.dumps({**entry, "score_default": 6.3, **changes})


class TestCudaL1(LayoutContract):
    name = "cuda-l1"

    def good(self, folder: Path) -> tuple[Path, None]:
        lines = [line(), line(task=2, custom_code=None), line(task=3, custom_code="None"), line(2, 1)]
        (folder / "a100.json").write_text("\n".join(lines) + "\n")
        return folder / "a100.json", None

    def test_scores_are_claims_and_lines_without_code_stay(self, tmp_path: Path) -> None:
        found = by_id(self.read(tmp_path))
        assert found["a100/level1/1"].claim == Claim(correct=True, speedup=6.3, device="a100")
        solution = found["a100/level1/1"].solution
        assert solution is not None and solution.read_text() == MODEL_NEW
        assert {found[f"a100/level1/{n}"].unusable for n in (2, 3)} == {"the release has no code for it"}

    def test_own_problems_replace_the_references_of_the_release(self, tmp_path: Path) -> None:
        place, _ = self.good(tmp_path)
        files(tmp_path / "KernelBench", "level1/1_x.py", "level2/7_y.py", text=MODEL)
        _, found = read_submissions(place, problems=tmp_path / "KernelBench", scratch=tmp_path)
        assert by_id(found)["a100/level1/1"].reference == tmp_path / "KernelBench/level1/1_x.py"
        assert "no problem 1 at level 2" in by_id(found)["a100/level2/1"].unusable

    def test_only_newlines_end_a_line(self, tmp_path: Path) -> None:
        raw = json.dumps({**json.loads(line()), "custom_code": "x = '\u2028'"}, ensure_ascii=False)
        (tmp_path / "a100.json").write_text(f"{raw}\n{line(task=2)}\n", encoding="utf-8")
        assert len(read_submissions(tmp_path / "a100.json", scratch=tmp_path)[1]) == 2

    def test_a_line_of_another_form_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "a100.json").write_text(f"{line()}\n{{}}\n")
        with pytest.raises(UsageError, match="line 2: no level_id"):
            read_submissions(tmp_path / "a100.json", scratch=tmp_path)


def solution(name: str, text: str, entry: str = "main.py::run") -> dict[str, Any]:
    spec = {"languages": ["pytorch"], "entry_point": entry, "destination_passing_style": False}
    sources = [{"path": entry.partition("::")[0], "content": text}]
    return {"name": name, "definition": "scaled", "author": "a", "spec": spec, "sources": sources}


SCALE = "def run(x, y, scale):\n    return x[:, : y.shape[1]] * y * scale\n"
KERNEL = solution("kernel", "int f();", "k.cu::f")
KERNEL["spec"]["binding"] = "tvm-ffi"
B200 = {"performance": {"speedup_factor": 1.5}, "environment": {"hardware": "B200"}}


class TestSol(LayoutContract):
    name = "sol"

    def good(self, folder: Path) -> tuple[Path, None]:
        place = write_sol(folder / "place" / "L1" / "scaled", definition(), workload(3), workload(5))
        (place / "solution.json").write_text(json.dumps(solution("right", SCALE)))
        (place / "solution_2.json").write_text(json.dumps(KERNEL))
        return folder / "place", None

    def test_each_solution_is_judged_on_each_workload(self, tmp_path: Path) -> None:
        found = by_id(self.read(tmp_path))
        assert list(found) == [f"L1/scaled/{n}/{name}" for n in (1, 2) for name in ("right", "kernel")]
        one, other = found["L1/scaled/1/right"], found["L1/scaled/2/right"]
        assert one.reference != other.reference
        assert one.solution is not None and one.solution == other.solution
        assert read_solution(one.solution, "x").entry_class == "ModelNew"
        assert "is bound by tvm-ffi" in found["L1/scaled/1/kernel"].unusable

    def test_a_solution_without_languages_is_one_that_cannot_be_judged(self, tmp_path: Path) -> None:
        place, _ = self.good(tmp_path)
        poor = {**solution("poor", SCALE), "spec": {"languages": []}}
        (place / "L1" / "scaled" / "solution_3.json").write_text(json.dumps(poor))
        found = by_id(self.read(tmp_path))
        assert "does not follow the FlashInfer Trace schema" in found["L1/scaled/1/poor"].unusable
        assert not found["L1/scaled/1/right"].unusable

    def test_a_definition_that_cannot_be_read_stops_no_other(self, tmp_path: Path) -> None:
        place, _ = self.good(tmp_path)
        whole = (place / "L1" / "scaled" / "definition.json").read_text()
        files(place, "L2/cut/definition.json", text=whole[:50])
        files(place, "L2/cut/solution.json", text=json.dumps(solution("right", SCALE)))
        found = by_id(read_submissions(place, scratch=tmp_path / "scratch")[1])
        assert "definition.json is not JSON" in found["L2/cut"].unusable
        assert found["L2/cut"].problem == "L2/cut"
        assert not found["L1/scaled/1/right"].unusable
        files(place, "L1/scaled/definition.json", text=whole[:50])
        with pytest.raises(UsageError, match=r"L1/scaled/definition\.json is not JSON"):
            read_submissions(place, scratch=tmp_path / "scratch")

    def test_references_of_another_place_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="leave out --problems"):
            read_submissions(self.good(tmp_path)[0], problems=tmp_path, scratch=tmp_path)


class TestFlashInfer(LayoutContract):
    name = "flashinfer"

    def good(self, folder: Path) -> tuple[Path, None]:
        place, said = folder / "place", [{"status": "PASSED", **B200}, {"status": "RUNTIME_ERROR"}, None]
        about = [{"definition": "scaled", "workload": workload(rows)} for rows in (3, 5, 7)]
        traces = [{**one, "solution": "right", "evaluation": e} for one, e in zip(about, said, strict=True)]
        files(place, "definitions/a/scaled.json", text=json.dumps(definition()))
        files(place, "workloads/a/scaled.jsonl", text="\n".join(map(json.dumps, about)))
        files(place, "solutions/a/right.json", text=json.dumps(solution("right", SCALE)))
        files(place, "solutions/a/kernel.json", text=json.dumps(KERNEL))
        files(place, "traces/a/scaled.jsonl", text="\n".join(map(json.dumps, traces)))
        return place, None

    def test_traces_are_claims(self, tmp_path: Path) -> None:
        found = by_id(self.read(tmp_path))
        assert [found[f"scaled/{n}/right"].claim for n in (1, 2, 3)] == [
            Claim(correct=True, speedup=1.5, device="B200"), Claim(correct=False), Claim(),
        ]  # fmt: skip

    def test_a_definition_that_cannot_be_read_stops_no_other(self, tmp_path: Path) -> None:
        place, _ = self.good(tmp_path)
        files(place, "definitions/a/cut.json", text=json.dumps(definition())[:50])
        found = by_id(read_submissions(place, scratch=tmp_path / "scratch")[1])
        assert "cut.json is not JSON" in found["cut"].unusable
        assert not found["scaled/1/right"].unusable

    def test_a_torn_solution_is_named_at_its_definition(self, tmp_path: Path) -> None:
        place, _ = self.good(tmp_path)
        files(place, "definitions/a/other.json", text=json.dumps(definition(name="other")))
        files(
            place,
            "workloads/a/other.jsonl",
            text=json.dumps({"definition": "other", "workload": workload(3)}),
        )
        files(place, "solutions/a/other/right.json", text=json.dumps(solution("right", SCALE))[:50])
        found = by_id(read_submissions(place, scratch=tmp_path / "scratch")[1])
        assert "right.json is not JSON" in found["other"].unusable
        assert not found["scaled/1/right"].unusable

    def test_traces_may_be_longer_than_a_problem(self, tmp_path: Path) -> None:
        """They have logs of each run."""
        place, _ = self.good(tmp_path)
        traces = place / "traces/a/scaled.jsonl"
        said = json.loads(traces.read_text().splitlines()[0])
        traces.write_text(json.dumps({**said, "log": "x" * (17 << 20)}))
        _, found = read_submissions(place, scratch=tmp_path / "scratch")
        assert by_id(found)["scaled/1/right"].claim.speedup == 1.5

    def test_a_trace_that_is_no_object_is_named(self, tmp_path: Path) -> None:
        place, _ = self.good(tmp_path)
        (place / "traces/a/scaled.jsonl").write_text("\n[]\n")
        with pytest.raises(UsageError, match="line 2 is no JSON object"):
            read_submissions(place, scratch=tmp_path)


SUBMISSION = """from task import input_t, output_t
import torch


def custom_kernel(data: input_t) -> output_t:
    x, out, weights, config = data
    out[...] = x * weights["w"].to("cuda") * config["factor"]
    return out
"""


class TestGpuMode(LayoutContract):
    name = "gpu-mode"

    def good(self, folder: Path) -> tuple[Path, Path]:
        if not (folder / "tasks").exists():
            write_task(folder / "tasks" / "scale_py")
        files(folder / "place", "right.py", text=SUBMISSION)
        files(folder / "place", "broken.py", text="def custom_kernel(data):\n    return (\n")
        files(folder / "place", "notes.py", text="x = 1\n")
        return folder / "place", folder / "tasks" / "scale_py"

    def test_a_submission_answers_as_the_reference_on_each_problem(self, tmp_path: Path) -> None:
        found = by_id(self.read(tmp_path))
        assert [name for name in found if name.endswith("/right")] == [
            f"scale_py/{kind}/right" for kind in ("tests/1", "tests/2", "benchmarks")
        ]
        assert "is not Python" in found["scale_py/benchmarks/broken"].unusable
        for name, size in (("tests/2", 6), ("benchmarks", 64)):
            one = found[f"scale_py/{name}/right"]
            assert one.reference is not None and one.solution is not None
            spaces: list[dict[str, Any]] = [{}, {}]
            for space, path in zip(spaces, (one.reference, one.solution), strict=True):
                exec(path.read_text(), space)
            inputs = spaces[0]["get_inputs"]()
            expected, got = (
                space[kind]()(*inputs) for space, kind in zip(spaces, ("Model", "ModelNew"), strict=True)
            )
            assert got.shape == (size,) and got.equal(expected)

    @pytest.mark.parametrize(
        ("answer", "fresh"),
        [
            ("return x * weights['w'] * config", True),
            ("out = x * weights['w'] * config\n    return out", True),
            ("out[...] = x * weights['w'] * config\n    return out", False),
        ],
    )
    def test_memory_that_the_reference_leaves_alone_is_made_anew(
        self, tmp_path: Path, answer: str, fresh: bool
    ) -> None:
        """Its answer is no input's memory, so a submission's may not be either."""
        reference = (
            "import torch\n\n\ndef ref_kernel(data):\n    x, weights, config, out = data\n    "
            f"{answer}\n\n\ndef generate_input(size, seed):\n    x = torch.ones(size)\n"
            "    return x, {'w': x.clone()}, 2, torch.empty(size)\n"
        )
        task = write_task(tmp_path / "scale_py", reference=reference)
        text = "def custom_kernel(data):\n    return data[-1].copy_(data[0] * 2)\n"
        files(tmp_path / "place", "s.py", text=text)
        _, found = read_submissions(tmp_path / "place", problems=task, scratch=tmp_path / "scratch")
        assert found[0].solution is not None
        space: dict[str, Any] = {}
        exec(found[0].solution.read_text(), space)
        inputs = space["get_inputs"]()
        got = space["ModelNew"]()(*inputs)
        assert got.tolist() == [2.0] * 5
        assert (got.data_ptr() != inputs[-1].data_ptr()) is fresh

    @pytest.mark.parametrize("deep", ["-" * 100_000 + "1", "+".join("1" * 20_000)])
    def test_a_file_that_exhausts_the_parser_is_refused_alone(self, tmp_path: Path, deep: str) -> None:
        place, task = self.good(tmp_path)
        files(place, "broken.py", text=f"def custom_kernel(data):\n    return data\n\n\nx = {deep}\n")
        _, submissions = read_submissions(place, problems=task, scratch=tmp_path / "scratch")
        found = by_id(submissions)
        assert re.search(r"is not Python \(.+\)", found["scale_py/benchmarks/broken"].unusable)
        assert not found["scale_py/benchmarks/right"].unusable

    def test_the_folder_of_the_task_may_hold_the_submissions(self, tmp_path: Path) -> None:
        _, task = self.good(tmp_path)
        files(task, "submission.py", text=SUBMISSION)
        layout, found = read_submissions(task, scratch=tmp_path / "scratch")
        assert (layout, len(found)) == ("gpu-mode", 3)
        assert {one.problem.partition("/")[0] for one in found} == {"scale_py"}

    def test_a_submission_without_its_task_is_one_sentence(self, tmp_path: Path) -> None:
        place, _ = self.good(tmp_path)
        with pytest.raises(UsageError, match=r"no task\.yml: name the task's folder with --problems DIR"):
            read_submissions(place / "right.py", scratch=tmp_path)


def test_an_empty_place_blames_no_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = SimpleNamespace(name="empty", submissions=lambda *_: ())
    monkeypatch.setattr("agentforge.campaigns.audit._base._reader", lambda *_: reader)
    with pytest.raises(UsageError, match=f"^{tmp_path} has no submission: name the folder or file"):
        read_submissions(tmp_path, scratch=tmp_path)


def test_a_place_without_a_layout_is_one_sentence(tmp_path: Path) -> None:
    for place, layout, words in (
        (tmp_path, "auto", "has no known layout .*--layout"),
        (tmp_path / "nowhere", "auto", "does not exist"),
        (tmp_path, "paper", "paper"),
        (tmp_path, "claims", "cannot be read"),
        (tmp_path, "cuda-l1", "no file of CUDA-L1's release"),
    ):
        with pytest.raises(UsageError, match=words) as caught:
            read_submissions(place, layout=layout, scratch=tmp_path)
        assert "\n" not in str(caught.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("claims", "solution", "reference", "1", "runtime", "level_id", "ref_code")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(content=values)
def test_any_json_is_read_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: Any
) -> None:
    folder = tmp_path_factory.mktemp("place")
    files(folder, "level_1_problem_1_sample_0_kernel.py")
    files(folder / "KernelBench", "level1/1_x.py", text=MODEL)
    for name in ("claims.json", "eval_results.json"):
        (folder / name).write_text(json.dumps(content))
    for layout in layouts.names():
        try:
            found = read_submissions(
                folder, layout=layout, problems=folder / "KernelBench", scratch=folder / "scratch"
            )[1]
        except UsageError:
            continue
        assert all(isinstance(one, Submission) for one in found)
