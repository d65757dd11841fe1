"""Artifacts that are judged again. The referee is real in the slow test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentforge.campaigns.recheck import Made, Recheck, as_made, judged, recheck
from agentforge.config import load_settings
from agentforge.runs.artifacts import write_kernel
from agentforge.schema import Evaluation, Evidence, Interval, UsageError
from agentforge.stitch.artifact import write_artifact
from tests.cli.conftest import Run, home, run
from tests.loop.test_bottleneck_state import measured
from tests.stitch.conftest import block
from tests.stitch.making import Stitched
from tests.stitch.test_artifact import report
from tests.store import nouns

__all__ = ["block", "home", "run"]

MADE = Recheck(artifact="out/fast", mode="kernels", before=Interval(point=3, low=2.9, high=3.1))


def verdict(speedup: float = 2.0, **changes: Any) -> Evaluation:
    return Evaluation.model_validate({**dict(measured(speedup)), **changes})


@pytest.mark.parametrize(
    ("mode", "evaluation", "ok", "words"),
    [
        ("kernels", verdict(), True, "fast is still right and still faster: 2.00x"),
        ("kernels", verdict(), True, "3.00x [2.90, 3.10] when it was made"),
        ("kernels", verdict(0.5), False, "fast is still right and no longer faster: 0.50x"),
        ("eager", verdict(1.0), True, "is still right, and runs the original model"),
        (
            "kernels",
            verdict(evidence=Evidence.UNVERIFIED, reasons=("the machine was not steady",)),
            False,
            "is still right; whether it is faster is not decided: the machine was not steady",
        ),
        (
            "kernels",
            verdict(status="INCORRECT_NUMERICAL", evidence="unverified", performance=None, reasons=("off",)),
            False,
            "fast is no longer right: off",
        ),
        (
            "kernels",
            verdict(evidence=Evidence.SUSPICIOUS, reasons=("no own kernels",)),
            False,
            "no longer right: no own kernels",
        ),
    ],
)
def test_a_verdict_is_one_sentence(mode: str, evaluation: Evaluation, ok: bool, words: str) -> None:
    found = judged(MADE.model_copy(update={"mode": mode}), Made(), evaluation)
    assert (found.ok, words in found.sentence) == (ok, True), found.sentence


def report_of(over_eager: float, over_compile: float) -> Made:
    """Of an artifact that was so much faster when it was made; the intervals are 1 % wide to each side."""
    ends = {"eager": over_eager, "compile": over_compile}
    speedup = {n: {"point": s, "low": s * 0.99, "high": s * 1.01} for n, s in ends.items()}
    return Made.model_validate({"performance": {"best_baseline": "compile", "speedup": speedup}})


@pytest.mark.parametrize(
    ("mode", "then", "now", "ok", "words"),
    [
        # torch.compile is 1.5x, and so is the artifact that runs it
        ("compile", (1.48, 0.98), (1.47, 1.5), True, "still faster: 1.47x"),
        ("compile+freezing", (1.48, 0.98), (0.9, 1.5), False, "no longer faster: 0.90x"),
        # a tie is enough for kernels that need no compiler
        ("kernels", (1.51, 1.0), (1.5, 1.5), True, "still as fast: 1.00x"),
        ("kernels", (1.51, 1.0), (1.35, 1.5), False, "no longer as fast: 0.90x"),
        # they beat eager, and were slower than torch.compile
        ("kernels", (1.2, 0.8), (1.2, 1.5), True, "still faster: 1.20x"),
        ("kernels", (1.2, 0.8), (0.99, 1.5), False, "no longer faster: 0.99x"),
        # they beat torch.compile
        ("kernels", (3.0, 2.0), (1.6, 1.5), True, "still faster: 1.07x"),
        ("kernels", (3.0, 2.0), (1.5, 1.5), False, "no longer faster: 1.00x"),
    ],
)
def test_an_artifact_must_beat_again_what_it_beat_when_it_was_made(
    mode: str, then: tuple[float, float], now: tuple[float, float], ok: bool, words: str
) -> None:
    bare = as_made(Recheck(artifact="out/fast", mode=mode), report_of(*then))
    found = judged(bare, Made(), measured(now[0], compiled=now[1]))
    assert (found.ok, found.right, words in found.sentence) == (ok, True, True), found.sentence


@pytest.mark.parametrize("status", ["HARNESS_ERROR", "UNSUPPORTED"])
def test_what_the_referee_could_not_judge_is_not_wrong(status: str) -> None:
    failed = {"status": status, "evidence": "unverified", "performance": None}
    found = judged(MADE, Made(), verdict(**failed, reasons=("the disk is full",)))
    assert (found.ok, found.right, found.faster) == (False, None, None)
    assert found.sentence == "fast cannot be judged here: the disk is full"


def test_a_kernel_that_no_longer_runs_is_found() -> None:
    found = judged(MADE, Made(kernels=(Made.Kernel(name="norm_1", runs_expected=2),)), verdict())
    assert not found.ok
    assert found.sentence.endswith("no longer right: kernel norm_1 ran 0 times in one forward, not 2")


def test_other_versions_are_named() -> None:
    evaluation = verdict()
    then = {**evaluation.environment.toolchain, "torch": "1.0"}
    made = Made.model_validate({"provenance": {"environment": {"toolchain": then}}})
    found = judged(MADE, made, evaluation)
    assert found.changed == {"torch": ("1.0", evaluation.environment.toolchain.get("torch", ""))}
    assert "torch 1.0 is now" in found.sentence


def test_a_folder_that_is_no_artifact_is_refused(tmp_path: Path) -> None:
    for content in ("", "[]", "{}"):
        (tmp_path / "plan.json").write_text(content)
        with pytest.raises(UsageError, match="is no artifact: give the folder"):
            recheck(tmp_path, load_settings([]))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"performance": [1]}, "performance"),
        (
            {"performance": {"speedup": {"eager": {"point": 1.0, "high": 2.0}}}},
            "performance.speedup.eager.low",
        ),
        ({"precision": {"installed": True}}, "precision"),
        ({"kernels": [{"name": "a"}]}, "kernels.0.runs_expected"),
        ({"provenance": {"environment": {"toolchain": [1]}}}, "provenance.environment.toolchain"),
    ],
)
def test_a_report_with_a_wrong_content_is_one_sentence(
    tmp_path: Path, content: dict[str, Any], place: str
) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"device": "cpu", "mode": "kernels"}))
    (tmp_path / "reference_model.py").write_text("class Model: ...\n")
    (tmp_path / "report.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=rf"report\.json is not as a run wrote it \({place}: "):
        recheck(tmp_path, load_settings([]))


def test_all_artifacts_are_looked_at_before_one_is_judged(tmp_path: Path, run: Run) -> None:
    good = tmp_path / "good"
    good.mkdir()
    (good / "plan.json").write_text(json.dumps({"device": "abacus", "mode": "kernels"}))
    (good / "report.json").write_text("{}")
    (good / "reference_model.py").write_text("class Model: ...\n")
    done = run("recheck", str(good), str(tmp_path / "bad"))
    assert (done.code, done.out) == (2, "")
    assert "bad is no artifact" in done.err


def test_an_artifact_for_a_missing_device_is_not_judged(tmp_path: Path, run: Run) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"device": "abacus", "mode": "kernels"}))
    (tmp_path / "report.json").write_text("{}")
    (tmp_path / "reference_model.py").write_text("class Model: ...\n")
    found = recheck(tmp_path, load_settings([]))
    assert (found.ok, found.right) == (False, None)
    assert "cannot be judged here" in found.sentence
    done = run("recheck", str(tmp_path))
    assert done.err == f"judging {tmp_path}\n", "judging takes minutes"
    assert (done.code, done.out) == (1, f"{found.sentence}\n")


def test_a_kernel_is_named_and_the_others_are_judged(tmp_path: Path, run: Run) -> None:
    kernel, good = tmp_path / "kernel", tmp_path / "good"
    write_kernel(kernel, nouns.solution(), nouns.evaluation(), nouns.definition())
    good.mkdir()
    (good / "plan.json").write_text(json.dumps({"device": "abacus", "mode": "kernels"}))
    (good / "report.json").write_text("{}")
    (good / "reference_model.py").write_text("class Model: ...\n")
    done = run("recheck", str(kernel), str(good))
    assert done.code == 1
    first, second = done.out.splitlines()
    assert (
        f"has a kernel, not a model: judge it with `agentforge verify {kernel}/reference.py {kernel}`"
        in first
    )
    assert "good cannot be judged here" in second
    assert run("recheck", str(kernel), str(tmp_path / "bad")).code == 2, (
        "what is neither still stops the list"
    )


@pytest.mark.slow
def test_an_artifact_is_judged_again(block: Stitched, tmp_path: Path) -> None:
    folder = tmp_path / "artifact"
    write_artifact(folder, block.target, block.solution, report(block), cache=tmp_path / "cache")
    flags = ("referee.compile_baseline=false", "referee.full_seconds=0.5", "referee.full_blocks=4")
    found = recheck(folder, load_settings((*flags, "referee.patience_s=0")))
    assert found.right is True, found.sentence
    assert found.evaluation is not None and found.evaluation.passed
    source = (folder / "kernelbench_solution.py").read_text()
    assert "rsqrt" in source
    (folder / "reference_model.py").write_text(
        (folder / "reference_model.py").read_text().replace("1e-6", "1e-1")
    )
    found = recheck(folder, load_settings(flags))
    assert (found.ok, found.right) == (False, False)
    assert "is no longer right" in found.sentence
