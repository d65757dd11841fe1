"""The work that waits for a GPU goes all its ways without one: no typo should cost time on a GPU."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from importlib import util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from agentforge.codegen.library import kernel_templates
from agentforge.config import load_settings
from agentforge.devices import DeviceSpec, detect, gpu_present, with_fallbacks
from agentforge.ladder import LADDER, Ladder, RungOutcome, RungResult
from agentforge.languages import builds_at_import
from agentforge.languages.python.language import check_syntax
from agentforge.languages.triton.language import triton_version
from agentforge.schema import Definition, Progress, StitchStarted

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "benchmarks" / "gpu" / "run.py"

pytestmark = pytest.mark.usefixtures("flat_imports")


@pytest.fixture(scope="module")
def run() -> ModuleType:
    path = list(sys.path)
    try:
        spec = util.spec_from_file_location("gpu_run", RUN)
        assert spec is not None and spec.loader is not None
        module = util.module_from_spec(spec)
        sys.modules["gpu_run"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path
    return module


def started(*arguments: str, seconds: float = 280) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(RUN), *arguments],
        capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False,
    )  # fmt: skip


def test_every_piece_says_what_it_does(run: ModuleType) -> None:
    for name, piece in run.PIECES.items():
        assert piece.__name__ == name and (piece.__doc__ or "").strip()


def test_a_search_leaves_time_for_what_is_around_it(run: ModuleType, sitting: ModuleType) -> None:
    for given in (sitting.SHARES["optimize"], run.LIMIT_S, *range(240, 1800, 30)):
        share = given - 25.0  # what `measure` and the piece keep for themselves
        minutes = run.search_minutes(share)
        assert minutes * 60 + 200 <= share and minutes >= 0.1


@pytest.mark.parametrize(("only", "target"), [((), "llama_block"), (("dlrm",), "dlrm")])
def test_one_target_is_optimized_in_its_share(
    run: ModuleType, only: tuple[str, ...], target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[list[str], float]] = []

    def command(argv: list[str], seconds: float) -> dict[str, Any]:
        started.append((argv, seconds))
        return {"ok": True}

    monkeypatch.setattr(run, "command", command)
    found = run.optimize(run.Run(400.0, tmp_path, False, lambda _: None, only))
    ((argv, seconds),) = started
    assert list(found["runs"]) == [f"examples/{target}.py"] and f"examples/{target}.py" in argv
    assert float(argv[-1]) * 60 + 200 <= seconds <= 400
    assert all((ROOT / "examples" / f"{name}.py").is_file() for name in run.parts("optimize"))


DEFINITION = Definition(name="softmax", op_type="softmax", reference="class Model: ...")


def test_verdicts_are_asked_for_each_kind_of_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    verdict = importlib.import_module("gpu.verdict")
    found = verdict.others(DEFINITION)
    assert {name: one.spec.language for name, one in found.items()} == {
        "triton": "triton", "load_inline": "cuda", "cupy": "cupy",
    }  # fmt: skip
    assert {name for name, one in found.items() if builds_at_import(one)} == {"load_inline"}
    for one in found.values():
        assert all(check_syntax(file) is None for file in one.sources)


def test_counters_can_be_asked_for_beyond_the_size_of_a_sandboxed_file(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    feedback = importlib.import_module("gpu.feedback")
    targets: list[str] = []

    def measure(left: float, minutes: Any, keep: Any, target: Path) -> dict[str, Any]:
        assert minutes is run.search_minutes and keep is kept
        targets.append(target.read_text())
        return {"ok": True, "sandboxes": {}}

    monkeypatch.setattr(feedback, "measure", measure)
    kept: Any = lambda _: None  # noqa: E731
    for only in ((), ("large",)):
        run.feedback(run.Run(60.0, tmp_path, False, kept, only))
    assert "torch.randn(16384 // 2, 16384)" in targets[1] and len(targets) == 2
    assert targets[0] == feedback.TARGET.read_text() and run.parts("feedback") == ["large"]
    assert 16384 // 2 * 16384 * 4 > 1 << 28


def test_packages_that_are_missing_are_named(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run.missing("optimize") == []
    monkeypatch.setattr(run, "installed", lambda name: name not in ("langgraph", "pydantic"))
    assert run.missing("operators") == ["pydantic"]
    assert run.missing("optimize") == ["langgraph", "pydantic"]


@pytest.mark.slow
@pytest.mark.parametrize(("piece", "has"), [("operators", "softmax"), ("profile", "no parts")])
def test_a_part_that_a_piece_lacks_is_refused(piece: str, has: str) -> None:
    done = started(piece, "--only", "nothing", "--dry")
    assert done.returncode == 2
    assert f"{piece} has no nothing; it has" in done.stderr
    assert has in done.stderr


@pytest.mark.skipif(gpu_present(), reason="there is a GPU")
def test_without_a_gpu_nothing_is_measured(tmp_path: Path) -> None:
    done = started("operators", "--output", str(tmp_path))
    assert done.returncode == 2 and "needs an NVIDIA GPU" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_program_that_takes_too_long_is_an_answer(run: ModuleType) -> None:
    found = run.command([sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(60)"], 1)
    assert not found["ok"] and "stopped after" in found["said"]


def dry(piece: str) -> dict[str, Any]:
    done = started(piece, "--dry")
    answer: dict[str, Any] = json.loads(done.stdout[f"\n{done.stdout}".index("\n{\n") :])
    assert done.returncode == 0, answer
    return answer


@pytest.mark.slow
@pytest.mark.skipif(not triton_version(), reason="Triton is not installed")
def test_all_operators_are_right_in_a_dry_run() -> None:
    operators = dry("operators")["operators"]
    known = {name for one in operators.values() for name in one["offline"]}
    assert {t.id for t in kernel_templates().values() if t.language == "triton"} <= known
    for one in operators.values():
        assert not one["failed"] and one["offline"]["copy"]["share_of_copy"] == 1.0


@pytest.mark.slow
@pytest.mark.skipif(not triton_version(), reason="Triton is not installed")
def test_tuning_goes_through_points_in_a_dry_run() -> None:
    for one in dry("tune")["kernels"].values():
        assert len(one["points"]) == 2 and not one["failed"]


@pytest.fixture(scope="module")
def sitting(run: ModuleType) -> ModuleType:  # which has put the folder of benchmarks on the path
    spec = util.spec_from_file_location("gpu_sitting", RUN.with_name("sitting.py"))
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_sitting_has_a_place_for_each_piece(run: ModuleType, sitting: ModuleType) -> None:
    assert list(sitting.SHARES) == list(run.PIECES)
    assert sum(sitting.SHARES.values()) <= 45 * 60
    assert sitting.SHARES["attacks"] == 420


def test_a_piece_that_fails_or_hangs_costs_only_itself(
    sitting: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitting, "_GRACE_S", 0.0)
    monkeypatch.setitem(sitting.SHARES, "tests", 1)
    good = json.dumps(
        {"ok": True, "cut_off": False, "commit": "abc", "device": "a GPU", "driver": "580.1, x"}
    )

    def start(piece: str, seconds: float) -> list[str]:
        programs = {"ladder": "exit 1", "tests": "sleep 60", "verdict": "kill -SEGV $$"}
        write = f"echo '{good}' > {tmp_path}/gpu-{piece}.json"
        return ["sh", "-c", programs.get(piece, write)]

    fates = sitting.sit(40, tmp_path, "abc", start)
    assert fates["ladder"] == "exit code 1"
    assert fates["tests"] == "stopped after 1 s"
    assert fates["verdict"] == "exit code -11"
    assert {fates[p] for p in list(fates)[3:]} == {"ok"}
    again = sitting.sit(40, tmp_path, "abc", lambda *_: ["sh", "-c", "exit 0"])
    assert again["operators"] == "measured before" and again["ladder"] == "ok"
    assert sitting.sit(0, tmp_path, "other", start)["operators"] == "no time left"
    page = (tmp_path / "gpu.md").read_text()
    assert "| operators | ok | a GPU | 580.1 |" in page and "| ladder |" not in page


@pytest.mark.parametrize("commit", ["", "abc-dirty"])
def test_a_piece_of_unknown_code_is_measured_again(sitting: ModuleType, tmp_path: Path, commit: str) -> None:
    (tmp_path / "gpu-verdict.json").write_text(json.dumps({"ok": True, "cut_off": False, "commit": commit}))
    assert not sitting.complete(tmp_path, "verdict", commit)


def test_the_ladder_runs_dry() -> None:
    assert len(dry("ladder")["rungs"]) > 10


def test_a_piece_that_raises_keeps_what_it_measured(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def piece(given: Any) -> dict[str, Any]:
        given.keep({"verdicts": [1]})
        raise RuntimeError("the GPU is gone")

    detect("auto")  # remembers the compilers' versions
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    monkeypatch.setenv("PATH", "")  # neither git nor nvidia-smi
    monkeypatch.setitem(run.PIECES, "verdict", piece)
    assert run.measure("verdict", tmp_path, 30.0) == 1
    found = json.loads((tmp_path / "gpu-verdict.json").read_text())
    assert found["verdicts"] == [1] and "the GPU is gone" in found["failed"]
    assert not found["ok"] and not found["cut_off"] and found["commit"] == found["driver"] == ""


def test_a_part_of_a_piece_leaves_the_result_of_the_piece(
    run: ModuleType, sitting: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    # Of a checkout with changes nothing is complete.
    monkeypatch.setattr(importlib.import_module("_provenance"), "commit", lambda: "452db012")
    monkeypatch.setitem(run.PIECES, "operators", lambda given: {"ok": True, "names": [*given.only]})
    assert run.measure("operators", tmp_path, 30.0, ("softmax",)) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["gpu-operators-part.json"]
    part = json.loads((tmp_path / "gpu-operators-part.json").read_text())
    assert part["names"] == ["softmax"]
    assert not sitting.complete(tmp_path, "operators", part["commit"])
    assert run.measure("operators", tmp_path, 30.0) == 0
    assert sitting.complete(tmp_path, "operators", part["commit"])


def test_each_attack_is_kept_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    attacks = importlib.import_module("gpu.attacks")
    monkeypatch.setattr(attacks, "failed_launch", lambda _: {"ok": True})

    every = {"a": {"ok": True}, "b": {"ok": False}}

    def attempt(
        device: str, only: Sequence[str], done: Collection[str]
    ) -> Iterator[tuple[str, dict[str, bool]]]:
        return iter((name, every[name]) for name in only or every if name not in done)

    monkeypatch.setattr(attacks.hostile, "attempt", attempt)
    monkeypatch.setattr(
        attacks.hostile, "chosen", lambda _, only: [SimpleNamespace(name=name) for name in only or every]
    )
    kept: list[list[str]] = []
    keep = lambda answer: kept.append(list(answer["attacks"]))  # noqa: E731
    found = attacks.attempt(60.0, True, keep)
    assert kept == [["failed_launch", "a"], ["failed_launch", "a", "b"]] and not found["ok"]
    assert attacks.attempt(60.0, True, keep, ["a"]) == {
        "ok": True, "attacks": {"a": {"ok": True}}, "left": [],
    }  # fmt: skip
    kept.clear()
    late = attacks.attempt(-1.0, True, keep)
    assert kept == [["failed_launch", "a"]] and late["left"] == ["b"] and not late["ok"]
    every["b"] = {"ok": True}
    again = attacks.attempt(60.0, True, keep, (), late["attacks"])
    assert kept[1:] == [["failed_launch", "a", "b"]] and again["ok"] and not again["left"]


def test_an_honest_program_is_judged_before_the_hostile_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    hostile = importlib.import_module("gpu.hostile")
    attacks = importlib.import_module("gpu.attacks")
    names = [attack.name for attack in hostile.chosen("cuda")]
    assert names[0] == "honest" and set(names) >= {"other_stream", "l2_carve_out", "kernel_left_running"}
    assert not set(names) & {name for name, _, _ in attacks._TIMED}
    assert [attack.name for attack in hostile.chosen("cuda", ["stale_graph"])] == ["honest", "stale_graph"]


@pytest.mark.parametrize(
    ("commit", "cut_off", "taken"),
    [
        ("452db012", True, ["a"]),
        ("452db012", False, ["a"]),
        ("other", True, []),
        ("452db012-dirty", True, []),
    ],
)
def test_attacks_go_on_where_they_stopped(
    run: ModuleType,
    commit: str,
    cut_off: bool,
    taken: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    attacks = importlib.import_module("gpu.attacks")
    now = commit if commit.endswith("-dirty") else "452db012"
    monkeypatch.setattr(importlib.import_module("_provenance"), "commit", lambda: now)
    earlier = {"ok": False, "cut_off": cut_off, "commit": commit,
               "attacks": {"a": {"ok": True}, "b": {"ok": False}}}  # fmt: skip
    (tmp_path / "gpu-attacks.json").write_text(json.dumps(earlier))
    before: list[Any] = []

    def attempt(left: float, dry: bool, keep: Any, only: Sequence[str], given: Any) -> dict[str, Any]:
        before.append(list(given))
        return {"ok": True}

    monkeypatch.setattr(attacks, "attempt", attempt)
    for only in ((), ("a",)):
        run.attacks(run.Run(60.0, tmp_path, False, lambda _: None, only))
    assert before == [taken, []]


@pytest.mark.parametrize(
    ("left", "only", "judged", "whole"),
    [
        (60.0, (), ["load_inline", "triton", "cupy", *(f"softmax-{n}" for n in range(4))], True),
        (60.0, ("cupy", "load_inline"), ["load_inline", "cupy"], True),
        (60.0, ("softmax",), [f"softmax-{n}" for n in range(4)], True),
        (-1.0, (), [], False),
    ],
)
def test_verdicts_that_are_wanted_most_come_first(
    run: ModuleType,
    left: float,
    only: tuple[str, ...],
    judged: list[str],
    whole: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    verdict = importlib.import_module("gpu.verdict")
    asked: list[str] = []

    def answer(referee: Any, definition: Any, workload: Any, solution: Any) -> dict[str, Any]:
        asked.append(solution.name)
        return {"seconds": 1.0, "status": "PASSED"}

    monkeypatch.setattr(verdict, "find_device", lambda *_: None)
    monkeypatch.setattr(verdict, "Referee", lambda *_, **__: nullcontext())
    monkeypatch.setattr(verdict, "_verdict", answer)
    kept: list[Any] = []
    found = run.verdict(run.Run(left, tmp_path, False, kept.append, only))
    assert asked == judged and found["ok"] is whole and len(kept) == len(judged)
    assert set(run.parts("verdict")) == {"softmax", *verdict.others(DEFINITION)}


def test_the_sandboxes_that_were_asked_are_kept(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    feedback = importlib.import_module("gpu.feedback")
    there = SimpleNamespace(available=lambda: SimpleNamespace(ok=True))
    monkeypatch.setattr(
        feedback, "sandboxes", SimpleNamespace(names=lambda: ["a", "b"], create=lambda _: there)
    )
    minutes: list[float] = []

    def one(name: str, given: float, target: Path, device: str) -> dict[str, Any]:
        minutes.append(given)
        return {"error": "", "passed": []}

    monkeypatch.setattr(feedback, "_in", one)
    kept: list[list[str]] = []
    feedback.measure(300.0, run.search_minutes, lambda answer: kept.append(list(answer["sandboxes"])))
    assert kept == [["a"], ["a", "b"]]
    assert minutes == pytest.approx([run.search_minutes(300.0)] * 2, rel=0.01)


def test_counters_are_asked_for_without_stitching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    feedback = importlib.import_module("gpu.feedback")

    def start_run(*_: object, device: str, on_event: Any) -> None:
        on_event(Progress(text="falling back to another profiler"))
        on_event(StitchStarted())
        pytest.fail("the run went on")

    monkeypatch.setattr(feedback, "start_run", start_run)
    found = feedback._in("rlimits", 1.0, feedback.TARGET, "cpu")
    assert found["error"] == "" and len(found["refused"]) == 1


def test_the_gated_products_stay_far_from_half_precisions_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parents[1]))
    operators = importlib.import_module("gpu.operators")
    monkeypatch.setattr(operators, "rand", lambda *shape: torch.randn(shape))
    operator = operators.OPERATORS["fused_mlp"]
    assert operator.reference(*operator.inputs(64, 4096, 512)).abs().max() < 1000


def test_later_pieces_know_what_the_ladder_found(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = DeviceSpec(kind="cuda", name="GPU", architecture="sm_90")
    rungs = [RungResult(rung=rung.name, outcome=RungOutcome.WORKS) for rung in LADDER]
    rungs[-1] = rungs[-1].model_copy(update={"outcome": RungOutcome.FAILS, "fallback": "no-streams"})
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path))
    monkeypatch.setattr("agentforge.ladder.climb", lambda **_: Ladder(rungs=tuple(rungs)))
    monkeypatch.setattr("agentforge.devices.detect", lambda _: gpu)
    assert run.ladder(run.Run(60.0, tmp_path, False, lambda _: None))["ok"]
    assert with_fallbacks(gpu, load_settings([]).cache).fallbacks == ("no-streams",)
