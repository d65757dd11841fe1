"""Audits: verdicts beside claims, and an audit that goes on. The referee is real in the slow test."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentforge.campaigns.audit import Audit, AuditedItem, Claim, Outcome, render
from agentforge.campaigns.audit.audit import _Auditor, caught_by, compare
from agentforge.schema import Evaluation, EvaluationStatus, Evidence, Level, ReasonCode, StageResult
from tests.campaigns.suites.test_traces import definition, workload, write_sol
from tests.cli.conftest import Run, home, run
from tests.loop.test_bottleneck_state import measured
from tests.store import nouns

from .test_layouts import SCALE, solution

__all__ = ["home", "run"]


def verdict(status: str = "PASSED", **changes: Any) -> Evaluation:
    """An evaluation that is verified at 2x over eager, or failed."""
    failed = {"status": status, "evidence": Evidence.UNVERIFIED, "performance": None}
    base = {**dict(measured(2.0)), **(failed if status != "PASSED" else {})}
    return Evaluation.model_validate({**base, **changes})


@pytest.mark.parametrize(
    ("claim", "evaluation", "outcome"),
    [
        (Claim(), verdict(), Outcome.CONFIRMED),
        (Claim(speedup=1.5), verdict(), Outcome.CONFIRMED),
        (Claim(speedup=50.0), verdict(), Outcome.SLOWER),
        (Claim(speedup=1.5, baseline="graph"), verdict(), Outcome.RIGHT),
        (Claim(speedup=50.0, device="A100"), verdict(), Outcome.RIGHT),
        (Claim(speedup=1.5), verdict(evidence=Evidence.UNVERIFIED), Outcome.RIGHT),
        (Claim(speedup=1.5), verdict(evidence=Evidence.SUSPICIOUS), Outcome.REFUTED),
        (Claim(correct=True), verdict("CHEATING"), Outcome.REFUTED),
        (Claim(), verdict("CRASHED"), Outcome.REFUTED),
        (Claim(correct=False), verdict("INCORRECT_NUMERICAL"), Outcome.AS_CLAIMED_WRONG),
        (Claim(correct=False), verdict(), Outcome.CLAIMED_WRONG),
        (Claim(correct=False), verdict(evidence=Evidence.UNVERIFIED), Outcome.CLAIMED_WRONG),
        (Claim(correct=False), verdict(evidence=Evidence.SUSPICIOUS), Outcome.REFUTED),
        (Claim(correct=True), verdict("UNSUPPORTED"), Outcome.UNSUPPORTED),
        (Claim(correct=True), verdict("HARNESS_ERROR"), Outcome.UNDECIDED),
    ],
)
def test_a_verdict_is_compared_with_its_claim(claim: Claim, evaluation: Evaluation, outcome: Outcome) -> None:
    assert compare(claim, evaluation)[0] is outcome


@pytest.mark.parametrize(
    ("claimed", "here", "same"),
    [
        ("a100", "NVIDIA A100-SXM4-80GB", True),
        ("NVIDIA_B200", "NVIDIA B200", True),
        ("h20", "NVIDIA H200", False),
        ("l40", "NVIDIA L40S", False),
        ("RTX 4070", "NVIDIA GeForce RTX 4070", True),
        ("RTX 4070", "NVIDIA GeForce RTX 4070 Ti", False),
        ("RTX 4070", "NVIDIA GeForce RTX 4070 Laptop GPU", False),
        ("RTX 4070 Ti", "NVIDIA GeForce RTX 4070 Ti SUPER", False),
        ("RTX 4070 Ti", "NVIDIA GeForce RTX 4070 Ti", True),
    ],
)
def test_a_claim_counts_on_its_own_device(claimed: str, here: str, same: bool) -> None:
    environment = verdict().environment.model_copy(update={"device": here})
    outcome = Outcome.CONFIRMED if same else Outcome.RIGHT
    assert compare(Claim(speedup=1.5, device=claimed), verdict(environment=environment))[0] is outcome


def test_the_check_that_caught_a_cheat_is_named() -> None:
    stages = [
        StageResult(name=name, status=status)
        for name, status in (("smoke", EvaluationStatus.PASSED), ("mutation", EvaluationStatus.CHEATING))
    ]
    assert caught_by(verdict("CHEATING", stages=stages)) == "mutation"
    codes = {"reasons": ("none ran",), "codes": (ReasonCode.NO_OWN_KERNELS,)}
    assert caught_by(verdict(evidence=Evidence.SUSPICIOUS, **codes)) == "no_own_kernels"
    assert caught_by(verdict("TIMEOUT")) == "TIMEOUT"


def test_an_audit_is_markdown() -> None:
    evaluation = verdict()
    assert evaluation.performance is not None
    claim = Claim(speedup=50.0)
    items = (
        AuditedItem(
            id="a",
            problem="relu",
            claim=claim,
            outcome=Outcome.SLOWER,
            status="PASSED",
            evidence="verified",
            speedup=evaluation.performance.speedup,
        ),
        AuditedItem(id="b", problem="relu", claim=claim, outcome=Outcome.REFUTED, caught_by="smoke|x"),
    )
    found = Audit(place="p", layout="claims", level=Level.FULL, device="d", version="1", items=items)
    text = render.markdown(found)
    assert "- 1 slower, 1 refuted" in text
    assert "| smoke/x | 1 |" in text
    assert f"| a | 50.00x over eager | {evaluation.performance.speedup['eager']} | slower |  |" in text


REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
SOLUTION = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return {}
"""


QUICK = ("--level", "quick", "--device", "cpu", "-c", "referee.compile_baseline=false")


def place(folder: Path) -> Path:
    folder.mkdir()
    (folder / "relu.py").write_text(REFERENCE)
    (folder / "broken.py").write_text("import a_package_that_is_nowhere\nclass Model: ...\n")
    (folder / "right.py").write_text(SOLUTION.format("torch.clamp(x, min=0) + 1"))
    (folder / "wrong.py").write_text(SOLUTION.format("torch.zeros_like(x)"))
    (folder / "nothing.py").write_text("x = 1\n")
    entries = [{"solution": f"{n}.py", "reference": "relu.py"} for n in ("right", "wrong", "nothing", "gone")]
    entries.append({"id": "unloaded", "solution": "right.py", "reference": "broken.py"})
    (folder / "claims.json").write_text(json.dumps({"claims": entries}))
    return folder


@pytest.mark.slow
def test_an_audit_judges_all_and_takes_stored_verdicts_the_next_time(run: Run, tmp_path: Path) -> None:
    where, file = str(place(tmp_path / "foreign")), str(tmp_path / "audit.md")
    first = run("audit", where, *QUICK, "--json", "--markdown", file)
    assert first.code == 1
    outcomes = {item["id"]: item["outcome"] for item in first.json["items"]}
    assert outcomes == {
        "right": "right",
        "wrong": "refuted",
        "nothing": "refuted",
        "gone": "unsupported",
        "unloaded": "unsupported",
    }
    assert first.json["caught"] == {"smoke": 1, "read": 1}
    assert "a_package_that_is_nowhere" in first.json["items"][-1]["reasons"][0]
    assert Path(file).read_text().startswith("# Audit of ")
    second = run("audit", where, *QUICK, "--json")
    assert second.json["items"] == first.json["items"]  # the same evaluations: none was made anew
    assert run("audit", where, *QUICK, "--only", "right").code == 0
    again = run("audit", where, *QUICK, "--only", "wrong", "--again", "--json")
    known = [item["evaluation"] for item in first.json["items"]]
    assert again.json["items"][0]["evaluation"] not in known


def test_a_verdict_that_a_busy_machine_spoiled_is_not_taken_from_the_database() -> None:
    stored, fresh = measured(2.0, busy=True), measured(3.0)
    auditor, saves = object.__new__(_Auditor), dict.fromkeys(("save_definition", "save_solution"), id)
    auditor._conditions, auditor._again, auditor._level = "alike", False, Level.FULL
    parts = {
        "_device": SimpleNamespace(name="cpu"),
        "_referee": SimpleNamespace(evaluate=lambda request: fresh),
        "_store": SimpleNamespace(
            find_evaluation=lambda *key, conditions: ("stored", stored),
            save_evaluation=lambda evaluation, conditions: "fresh",
            **saves,
        ),
    }
    vars(auditor).update(parts)
    asked = nouns.definition(), (), nouns.solution()
    assert auditor._evaluate(*asked) == ("fresh", fresh)
    stored = measured(2.0)
    assert auditor._evaluate(*asked) == ("stored", stored)


@pytest.mark.slow
def test_a_reference_that_cannot_be_used_is_run_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("open('runs', 'a').write('x')\nraise ValueError('too bad')\n")
    (tmp_path / "right.py").write_text(SOLUTION.format("x"))
    entries = [{"id": name, "solution": "right.py", "reference": "broken.py"} for name in ("a", "b", "c")]
    (tmp_path / "claims.json").write_text(json.dumps(entries))
    items = run("audit", str(tmp_path), *QUICK, "--json").json["items"]
    assert [item["outcome"] for item in items] == ["unsupported"] * 3
    assert all("too bad" in item["reasons"][0] for item in items)
    assert (tmp_path / "runs").read_text() == "x"


HEADER = """#pragma once
#include <torch/extension.h>
void launch(torch::Tensor x, torch::Tensor y, torch::Tensor out, float by);
"""
CUDA = """#include "kernel.h"
#include <cuda_runtime.h>

__global__ void scaled(const float* x, const float* y, float* out, int n, int width, int columns, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i / columns * width + i % columns] * y[i] * by;
}

void launch(torch::Tensor x, torch::Tensor y, torch::Tensor out, float by) {
    int n = y.numel();
    scaled<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), n,
                                     x.size(1), y.size(1), by);
}
"""
MAIN = """#include <ATen/cuda/CUDAContext.h>
#include "kernel.h"

void run(torch::Tensor x, torch::Tensor y, double scale, torch::Tensor z) {
    launch(x.contiguous(), y.contiguous(), z, scale);
}
"""


@pytest.mark.slow
def test_cuda_solutions_of_a_trace_data_set_are_right_or_wrong(run: Run, tmp_path: Path) -> None:
    place = write_sol(tmp_path / "scaled", definition(), workload(64))
    for number, (name, by) in enumerate([("right", "by"), ("wrong", "1.0f")]):
        made = solution(name, MAIN, "main.cpp::run")
        made["spec"] = {"languages": ["cuda_cpp"], "entry_point": "main.cpp::run", "binding": "torch"}
        files = {"kernel.h": HEADER, "kernel.cu": CUDA.replace("y[i] * by", f"y[i] * {by}")}
        made["sources"] += [{"path": path, "content": text} for path, text in files.items()]
        (place / f"solution_{number}.json").write_text(json.dumps(made))
    answer = run("audit", str(place), *QUICK, "--json")
    outcomes = {item["id"]: item["outcome"] for item in answer.json["items"]}
    assert outcomes == {"scaled/right": "right", "scaled/wrong": "refuted"}


@pytest.mark.slow
def test_solutions_of_a_trace_data_set_are_judged_on_their_workloads(run: Run, tmp_path: Path) -> None:
    place = write_sol(tmp_path / "scaled", definition(), workload(64))
    (place / "solution.json").write_text(json.dumps(solution("right", SCALE)))
    (place / "solution_2.json").write_text(json.dumps(solution("wrong", SCALE.replace("* scale", "+ scale"))))
    answer = run("audit", str(place), *QUICK, "--json")
    assert (answer.code, answer.json["layout"]) == (1, "sol")
    outcomes = {item["id"]: item["outcome"] for item in answer.json["items"]}
    assert outcomes == {"scaled/right": "right", "scaled/wrong": "refuted"}
