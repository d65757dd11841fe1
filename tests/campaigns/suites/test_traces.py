"""FlashInfer Trace and SOL-ExecBench: what the formats say becomes problems that run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentforge.campaigns.suites import Selection, selected
from agentforge.campaigns.suites._below import MOST_WORKLOADS
from agentforge.frontends import load_target
from agentforge.schema import SuiteProblem, UsageError
from agentforge.testing.suite import SuiteContract

REFERENCE = """import torch


def make(axes, device):
    return {"y": torch.ones(axes["M"], axes["half"], device=device) * axes["scale"]}


def run(x, y, scale):
    return x[:, : y.shape[1]] * y * scale
"""


def definition(**changes: Any) -> dict[str, Any]:
    return {
        "name": "scaled",
        "op_type": "pointwise",
        "axes": {
            "M": {"type": "var"},
            "K": {"type": "const", "value": 8},
            "half": {"type": "expr", "expression": "K // 2"},
        },
        "inputs": {
            "x": {"shape": ["M", "K"], "dtype": "float32"},
            "y": {"shape": ["M", "half"], "dtype": "float32"},
            "scale": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"z": {"shape": ["M", "half"], "dtype": "float32"}},
        "reference": REFERENCE,
        **changes,
    }


def workload(rows: int, **inputs: Any) -> dict[str, Any]:
    given = {"x": {"type": "random"}, "y": {"type": "random"}, "scale": {"type": "scalar", "value": 2.0}}
    return {"uuid": f"w{rows}", "axes": {"M": rows}, "inputs": given | inputs}


def lines(*values: dict[str, Any]) -> str:
    return "\n".join(json.dumps(value) for value in values) + "\n"


def write_sol(folder: Path, about: dict[str, Any], *workloads: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "definition.json").write_text(json.dumps(about))
    (folder / "workload.jsonl").write_text(lines(*workloads))
    return folder


def load(problem: SuiteProblem, folder: Path) -> Any:
    path = folder / problem.file
    path.write_text(problem.source)
    return load_target(str(path))


def drawn(problem: SuiteProblem) -> list[Any]:
    """What the problem's `get_inputs()` gives for a seed."""
    torch = pytest.importorskip("torch")
    space: dict[str, Any] = {}
    exec(problem.source, space)
    torch.manual_seed(0)
    values: list[Any] = space["get_inputs"]()
    return values


def shapes(problem: SuiteProblem, folder: Path) -> list[tuple[int, ...]]:
    inputs = load(problem, folder).workloads[0].inputs
    return [i.shape for i in inputs if i.type == "tensor"]


class TestSol(SuiteContract):
    name = "sol"

    def good(self, folder: Path) -> str:
        write_sol(folder / "L1" / "scaled", definition(), workload(3), workload(5))
        write_sol(folder / "L2" / "alone", definition(name="alone"), workload(4))
        return str(folder)

    def missing(self, folder: Path) -> str:
        return str(folder / "nowhere")

    def half_there(self, folder: Path) -> str:
        (write_sol(folder / "L1" / "scaled", definition(), workload(3)) / "definition.json").unlink()
        return str(folder)

    def broken_in_part(self, folder: Path) -> str:
        where = self.good(folder)
        (folder / "L2" / "alone" / "workload.jsonl").write_text(lines(workload(4)) + "{")
        return where

    def test_solutions_are_no_part_of_a_problem(self, tmp_path: Path) -> None:
        before = selected(self.open(self.good(tmp_path)), Selection())
        (tmp_path / "L1" / "scaled" / "solution_a.json").write_text('{"name": "ours"}')
        (tmp_path / "L2" / "alone" / "solution_a.json").write_text('{"name": "torn')
        after = selected(self.open(str(tmp_path)), Selection())
        assert [problem.hash for problem in after] == [problem.hash for problem in before]

    def test_only_newlines_end_a_workload(self, tmp_path: Path) -> None:
        place = write_sol(tmp_path, definition(), workload(3))
        raw = json.dumps({**workload(3), "note": "\u2028"}, ensure_ascii=False)
        (place / "workload.jsonl").write_text(raw, encoding="utf-8")
        assert len(selected(self.open(str(place)), Selection())) == 1

    def test_a_definition_without_workloads_is_unsupported(self, tmp_path: Path) -> None:
        self.good(tmp_path)
        (tmp_path / "L1" / "scaled" / "workload.jsonl").unlink()
        first, other = selected(self.open(str(tmp_path)), Selection())
        assert (first.id, first.group, first.unsupported) == ("L1/scaled", "L1", "it has no workload")
        assert (other.id, other.unsupported) == ("L2/alone", "")

    def test_all_workloads_of_a_definition_are_one_problem(self, tmp_path: Path) -> None:
        found = selected(self.open(self.good(tmp_path)), Selection())
        assert [(p.id, p.group, p.definition) for p in found] == [
            ("L1/scaled", "L1", ""),
            ("L2/alone", "L2", ""),
        ]
        assert [w["axes"] for w in found[0].native["workloads"]] == [{"M": 3}, {"M": 5}]
        target = load(found[0], tmp_path)
        assert [
            (w.name, w.key, [i.shape for i in w.inputs if i.type == "tensor"]) for w in target.workloads
        ] == [
            ("1", "1", [(3, 8), (3, 4)]),
            ("2", "2", [(5, 8), (5, 4)]),
        ]
        assert len({w.hash for w in target.workloads}) == 2

    def test_a_pattern_with_a_number_selects_single_workloads(self, tmp_path: Path) -> None:
        found = selected(self.open(self.good(tmp_path)), Selection(only="*/scaled/*"))
        assert [(p.id, p.group, p.definition) for p in found] == [
            ("L1/scaled/1", "L1", "L1/scaled"),
            ("L1/scaled/2", "L1", "L1/scaled"),
        ]
        assert [p.native["axes"] for p in found] == [{"M": 3}, {"M": 5}]
        assert shapes(found[1], tmp_path) == [(5, 8), (5, 4)]

    def test_workloads_stay_single_if_one_cannot_run_here_or_there_are_too_many(self, tmp_path: Path) -> None:
        lost = workload(3, y={"type": "safetensors", "path": "gone", "tensor_key": "k"})
        write_sol(tmp_path / "lost", definition(), workload(3), lost)
        write_sol(tmp_path / "many", definition(), *map(workload, range(1, MOST_WORKLOADS + 2)))
        found = selected(self.open(str(tmp_path)), Selection())
        assert len(found) == 2 + MOST_WORKLOADS + 1
        assert all(problem.definition for problem in found)

    def test_workloads_with_the_same_shapes_draw_their_own_values(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        stored = pytest.importorskip("safetensors.torch")
        given = [
            workload(3, y={"type": "safetensors", "path": f"{n}.safetensors", "tensor_key": "k"})
            for n in (1, 2)
        ]
        folder = write_sol(tmp_path / "p", definition(), *given)
        for n in (1, 2):
            stored.save_file({"k": torch.full((3, 4), float(n))}, folder / f"{n}.safetensors")
        (problem,) = selected(self.open(str(tmp_path)), Selection())
        assert set(problem.files) == {"1.safetensors", "2.safetensors"}
        space: dict[str, Any] = {}
        exec(problem.source, space)
        assert [space["get_inputs"](w)[1].unique().tolist() for w in space["workloads"]] == [[1.0], [2.0]]
        assert space["get_inputs"]()[1].unique().tolist() == [1.0]

    def test_custom_inputs_come_from_the_references_own_function(self, tmp_path: Path) -> None:
        custom = workload(3, y={"type": "custom"})
        about = definition(custom_inputs_entrypoint="make")
        write_sol(tmp_path / "p", about, custom)
        (problem,) = selected(self.open(str(tmp_path / "p")), Selection())
        assert problem.id == "p"
        space: dict[str, Any] = {}
        exec(problem.source, space)
        x, y, scale = space["get_inputs"]()
        assert (tuple(y.shape), y.unique().tolist(), scale) == ((3, 4), [2.0], 2.0)
        assert space["Model"](*space["get_init_inputs"]())(x, y, scale).shape == (3, 4)

    def test_each_workload_has_its_own_tolerance(self, tmp_path: Path) -> None:
        given = {"max_atol": 1e-3, "max_error_cap": 0.1, "later": 1}
        write_sol(tmp_path, definition(), workload(3) | {"tolerance": given}, workload(5))
        (whole,) = selected(self.open(str(tmp_path)), Selection())
        found = [workload["tolerance"] for workload in whole.native["workloads"]]
        usual = {
            "max_atol": 1e-2, "max_rtol": 1e-2, "required_matched_ratio": 0.99,
            "max_error_cap": None, "allow_negative_inf": False,
        }  # fmt: skip
        assert found == [usual | {"max_atol": 1e-3, "max_error_cap": 0.1}, usual]

    @pytest.mark.parametrize("given", [{"max_atol": "much"}, {"required_matched_ratio": None}, 3])
    def test_a_tolerance_that_is_none_is_refused(self, tmp_path: Path, given: Any) -> None:
        write_sol(tmp_path, definition(), workload(3) | {"tolerance": given})
        with pytest.raises(UsageError, match=r"tolerance.*: correct it"):
            selected(self.open(str(tmp_path)), Selection())

    @pytest.mark.parametrize("scale", [float("-inf"), 1e-5, True, None, 3])
    def test_scalars_keep_their_value(self, tmp_path: Path, scale: float | None) -> None:
        given = workload(3, y={"type": "custom"}, scale={"type": "scalar", "value": scale})
        keeping = "def made(axes, device):\n    return {'y': axes}\n\n\ndef run(): ...\n"
        write_sol(tmp_path, definition(custom_inputs_entrypoint="made", reference=keeping), given)
        (problem,) = selected(self.open(str(tmp_path)), Selection())
        space: dict[str, Any] = {}
        exec(problem.source, space)
        _, axes, drawn = space["get_inputs"]()
        assert (axes["scale"], drawn) == (scale, scale)

    def test_tensors_of_a_safetensors_file_are_loaded(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        stored = pytest.importorskip("safetensors.torch")
        folder = write_sol(
            tmp_path / "p",
            definition(),
            workload(3, y={"type": "safetensors", "path": "blob/t.safetensors", "tensor_key": "k"}),
        )
        (found,) = selected(self.open(str(tmp_path)), Selection())
        assert found.unsupported == "its tensors are in blob/t.safetensors, which is not on this machine"
        (folder / "blob").mkdir()
        stored.save_file({"k": torch.full((3, 4), 7.0)}, folder / "blob" / "t.safetensors")
        (found,) = selected(self.open(str(tmp_path)), Selection())
        space: dict[str, Any] = {}
        exec(found.source, space)
        assert space["get_inputs"]()[1].unique().tolist() == [7.0]

    def test_a_problem_has_one_hash_wherever_its_tensors_are(self, tmp_path: Path) -> None:
        stored = {"type": "safetensors", "path": "blob/t.safetensors", "tensor_key": "k"}
        found = []
        for place in ("here", "there"):
            folder = write_sol(tmp_path / place / "p", definition(), workload(3, y=stored))
            (folder / "blob").mkdir()
            (folder / "blob" / "t.safetensors").write_bytes(b"")
            found += selected(self.open(str(tmp_path / place)), Selection())
        assert found[0].source != found[1].source
        assert found[0].hash == found[1].hash
        other = dict(stored, path="./blob/t.safetensors")
        write_sol(tmp_path / "here" / "p", definition(), workload(3, y=other))
        assert selected(self.open(str(tmp_path / "here")), Selection())[0].hash != found[0].hash

    def test_tensors_of_its_flashinfer_subset_are_beside_its_own_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored = {"type": "safetensors", "path": "blob/t.safetensors", "tensor_key": "k"}
        root = tmp_path / "data" / "benchmark"
        write_sol(root / "FlashInfer-Bench" / "p", definition(), workload(3, y=stored))
        for place, told in (("data/flashinfer-trace", None), ("elsewhere", str(tmp_path / "elsewhere"))):
            (tmp_path / place / "blob").mkdir(parents=True)
            (tmp_path / place / "blob" / "t.safetensors").write_bytes(b"")
            if told:
                monkeypatch.setenv("FLASHINFER_TRACE_DIR", told)
            (found,) = selected(self.open(str(root)), Selection())
            assert str(tmp_path / place / "blob" / "t.safetensors") in found.source

    def test_a_file_that_git_lfs_has_not_fetched_is_unsupported(self, tmp_path: Path) -> None:
        stored = {"type": "safetensors", "path": "t.safetensors", "tensor_key": "k"}
        folder = write_sol(tmp_path / "p", definition(), workload(3, y=stored))
        (folder / "t.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
        (found,) = selected(self.open(str(tmp_path)), Selection())
        reason = (
            "its tensors in t.safetensors are not fetched yet: run git lfs pull in the folder that has them"
        )
        assert found.unsupported == reason

    def test_an_input_that_a_workload_omits_is_random_and_its_kind_may_be_unsaid(
        self, tmp_path: Path
    ) -> None:
        given = workload(3, scale={"value": 2.0}, y={})
        del given["inputs"]["x"]
        write_sol(tmp_path, definition(), given)
        (found,) = selected(self.open(str(tmp_path)), Selection())
        x, y, scale = drawn(found)
        assert (tuple(x.shape), tuple(y.shape), scale) == ((3, 8), (3, 4), 2.0)

    def test_names_and_descriptions_say_what_an_input_holds(self, tmp_path: Path) -> None:
        inputs = {
            "x": {"shape": ["M", "K"], "dtype": "bfloat16"},
            "variance": {"shape": ["M"], "dtype": "bfloat16"},
            "attn_mask": {"shape": ["K", "K"], "dtype": "bfloat16", "description": "Causal attention mask"},
            "up_proj": {"shape": ["M", "K"], "dtype": "float16"},
            "norm_weight": {"shape": ["K"], "dtype": "int64"},
        }
        reference = f"def run({', '.join(inputs)}): ..."
        given = {"uuid": "w", "axes": {"M": 4096}, "inputs": {name: {"type": "random"} for name in inputs}}
        write_sol(tmp_path, definition(inputs=inputs, reference=reference), given)
        (found,) = selected(self.open(str(tmp_path)), Selection())
        x, variance, mask, up, weight = drawn(found)
        assert [str(v.dtype)[6:] for v in (x, variance, mask, up)] == ["bfloat16"] * 3 + ["float16"]
        assert x.min() < 0 < variance.min()
        assert (mask[1, :2].tolist(), mask[1, 2:].max() < -3e38) == ([0.0, 0.0], True)
        assert up.float().std().item() == pytest.approx(8**-0.5, rel=0.05)
        assert weight.unique().numel() > 1, "only numbers with a fraction have such names"

    @pytest.mark.parametrize(
        ("spec", "given", "reason"),
        [
            ({"shape": ["M"], "dtype": "float4_e2m1fn_x2"}, {"type": "random"}, "has no arithmetic here"),
            ({"shape": None, "dtype": "float32"}, {"type": "random"}, "random scalar"),
            ({"shape": ["M"], "dtype": "float32"}, {"type": "dream"}, "unknown kind 'dream'"),
        ],
    )
    def test_what_cannot_run_here_says_why(
        self, tmp_path: Path, spec: dict[str, Any], given: dict[str, Any], reason: str
    ) -> None:
        about = definition(inputs={**definition()["inputs"], "x": spec})
        write_sol(tmp_path, about, workload(3, x=given), workload(4))
        first, _ = selected(self.open(str(tmp_path)), Selection())
        assert reason in first.unsupported

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"reference": "def run(:"}, "its reference is not Python"),
            ({"reference": "-" * 100_000 + "1"}, r"its reference is not Python \(.+\)"),
            ({"reference": "x = 1"}, "no function run"),
            ({"custom_inputs_entrypoint": "gone"}, "no function gone"),
            ({"axes": {"M": {"type": "var"}}}, "'K' is missing"),
            ({"axes": []}, "does not follow its schema"),
            ({"inputs": {"x;y": {"shape": ["M"], "dtype": "float32"}}}, "is no Python name"),
        ],
    )
    def test_a_wrong_definition_is_one_clear_sentence(
        self, tmp_path: Path, changes: dict[str, Any], words: str
    ) -> None:
        write_sol(tmp_path, definition(**changes), workload(3))
        with pytest.raises(UsageError, match=words) as caught:
            selected(self.open(str(tmp_path)), Selection())
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(("text", "words"), [("{", "line 1 is not JSON"), ("[]", "no JSON object")])
    def test_a_wrong_workload_names_its_line(self, tmp_path: Path, text: str, words: str) -> None:
        (write_sol(tmp_path, definition()) / "workload.jsonl").write_text(text)
        with pytest.raises(UsageError, match=words):
            selected(self.open(str(tmp_path)), Selection())


class TestFlashInfer(SuiteContract):
    name = "flashinfer"

    def good(self, folder: Path) -> str:
        for place in ("definitions/pointwise", "workloads/pointwise", "solutions"):
            (folder / place).mkdir(parents=True)
        traces = [{"definition": "scaled", "solution": None, "workload": workload(n)} for n in (3, 5)]
        (folder / "workloads/pointwise/scaled.jsonl").write_text(lines(*traces))
        (folder / "definitions/pointwise/scaled.json").write_text(json.dumps(definition()))
        (folder / "definitions/unused.json").write_text(json.dumps(definition(name="unused")))
        (folder / "solutions/one.json").write_text('{"name": "one", "definition": "scaled"}')
        return str(folder)

    def missing(self, folder: Path) -> str:
        return str(folder / "nowhere")

    def half_there(self, folder: Path) -> str:
        (folder / "workloads").mkdir()
        return str(folder)

    def broken_in_part(self, folder: Path) -> str:
        self.good(folder)
        (folder / "definitions/unused.json").write_text("{")
        return str(folder)

    def test_definitions_find_their_workloads(self, tmp_path: Path) -> None:
        whole, unused = selected(self.open(self.good(tmp_path)), Selection())
        first, second = selected(self.open(str(tmp_path)), Selection(only="scaled/*"))
        assert [p.id for p in (whole, first, second)] == ["scaled", "scaled/1", "scaled/2"]
        assert (whole.group, first.group) == ("pointwise", "pointwise")
        assert shapes(second, tmp_path) == [(5, 8), (5, 4)]
        assert (unused.id, unused.unsupported) == ("unused", "it has no workload")

    def test_solutions_are_no_part_of_a_problem(self, tmp_path: Path) -> None:
        before = selected(self.open(self.good(tmp_path)), Selection())
        (tmp_path / "solutions/agentforge/scaled").mkdir(parents=True)
        (tmp_path / "solutions/agentforge/scaled/ours.json").write_text(
            '{"name": "ours", "definition": "scaled"}'
        )
        (tmp_path / "solutions/agentforge/scaled/torn.json").write_text('{"name": "to')
        after = selected(self.open(str(tmp_path)), Selection())
        assert [problem.hash for problem in after] == [problem.hash for problem in before]

    def test_probabilities_to_sample_from_are_probabilities(self, tmp_path: Path) -> None:
        inputs = {"probs": {"shape": ["M", "K"], "dtype": "float32"}}
        about = definition(op_type="sampling", inputs=inputs, reference="def run(probs): ...")
        given = {"axes": {"M": 3}, "inputs": {"probs": {"type": "random"}}}
        folder = Path(self.good(tmp_path))
        (folder / "definitions/pointwise/scaled.json").write_text(json.dumps(about))
        line = lines({"definition": "scaled", "workload": given})
        (folder / "workloads/pointwise/scaled.jsonl").write_text(line)
        (problem,) = selected(self.open(str(folder)), Selection(only="scaled"))
        (probs,) = drawn(problem)
        assert (probs.min() >= 0, probs.sum(-1).tolist()) == (True, pytest.approx([1.0] * 3))

    def test_names_say_nothing_of_the_values(self, tmp_path: Path) -> None:
        inputs = {"std": {"shape": ["M"], "dtype": "float32"}}
        folder = Path(self.good(tmp_path))
        about = definition(inputs=inputs, reference="def run(std): ...")
        (folder / "definitions/pointwise/scaled.json").write_text(json.dumps(about))
        line = {"definition": "scaled", "workload": {"axes": {"M": 64}, "inputs": {}}}
        (folder / "workloads/pointwise/scaled.jsonl").write_text(lines(line))
        (problem,) = selected(self.open(str(folder)), Selection(only="scaled"))
        assert drawn(problem)[0].min() < 0

    def test_a_line_without_a_workload_names_its_file(self, tmp_path: Path) -> None:
        self.good(tmp_path)
        (tmp_path / "workloads/pointwise/scaled.jsonl").write_text('{"definition": "scaled"}')
        scaled, unused = selected(self.open(str(tmp_path)), Selection())
        sentence = "workloads/pointwise/scaled.jsonl has a line without a workload: correct it"
        assert (scaled.id, scaled.unsupported) == ("scaled", sentence)
        assert unused.unsupported == "it has no workload"
        (tmp_path / "workloads/pointwise/scaled.jsonl").rename(tmp_path / "workloads/of_none.jsonl")
        with pytest.raises(UsageError, match=r"of_none\.jsonl has a line without a workload"):
            selected(self.open(str(tmp_path)), Selection())

    def test_there_are_no_levels(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="leave out --levels"):
            selected(self.open(self.good(tmp_path)), Selection(levels=(1,)))
