"""What was measured of a solution goes from the machine through the store into the prompts, in whole runs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.agents.llm.facts import steady
from agentforge.analysis import Report
from agentforge.config import load_settings
from agentforge.frontends import FrontendOptions
from agentforge.runs import ModelStart, start_run
from agentforge.schema import Bound, Event, Progress
from agentforge.store import Store
from tests.agents.llm import kernels
from tests.agents.llm.scene import Script
from tests.agents.llm.test_loop import MODEL
from tests.llm.server import LLMServer
from tests.profiling.nsight.installed import install

pytestmark = pytest.mark.slow

KERNEL = "FILE: kernel.cpp\n" + kernels.RIGHT_AND_FAST + kernels.MODEL
SMALL = MODEL.replace("32768", "4096")
LARGE = MODEL.replace("32768", "65536")
"""Its calls are long enough for threads to be counted."""
DISTURBED = "Other processes disturbed the measurement."
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"


class Run:
    """`optimize` with a scripted model behind each role, which has code for the first of two attempts."""

    def __init__(self, folder: Path, server: LLMServer) -> None:
        self.model = folder / "model.py"
        self.model.write_text(SMALL)
        self.script = Script(deque([KERNEL]), verdict="abandon")  # so the planner is asked again
        self.server = server
        server.script = self.script
        self.events: list[Event] = []

    def __call__(self, device: str) -> Report:
        agents = [f"search.{role}=openai:m@{self.server.url}" for role in ("planner", "coder", "judge")]
        self.settings = load_settings([*agents, "search.children=1", "search.min_share=0", "llm.retries=0",
            "search.sol_fraction=1", "budget.attempts=2", "search.language=cpp", "referee.task_seconds=0",
            "referee.compile_baseline=false", "referee.quick_seconds=0.2", "referee.quick_blocks=2",
            "referee.full_seconds=0.3", "referee.full_blocks=4", "referee.threads=2",
        ])  # fmt: skip
        options = FrontendOptions()
        return start_run(
            ModelStart(str(self.model), options), self.settings, device=device, on_event=self.events.append
        )

    def said(self, words: str) -> list[str]:
        texts = [e.text for e in self.events if isinstance(e, Progress)]
        return [text for text in texts if words in text]


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known_roofline: None, no_slow_parts: None
) -> Iterator[Run]:
    """Without what comes after the search, and without another try on a quieter machine."""
    monkeypatch.setattr("agentforge.runs.pipeline.RunPipeline.stitch", lambda *_: None)
    monkeypatch.setattr("agentforge.loop.steps.remeasure", lambda *_, **__: False)
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENTFORGE_DATABASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.delenv("NCU", raising=False)
    with LLMServer() as server:
        yield Run(tmp_path, server)


def test_counters_reach_the_store_and_the_prompts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install(tmp_path / "nsight", kernel="rms_norm")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    report = run("null")
    assert not run.said("falling back")
    with Store(run.settings.url) as store:
        attempt = store.attempts(report.run.id)[0]
        assert attempt.evaluation is not None
        evaluation = store.get_evaluation(attempt.evaluation)
        counted = [m for m in evaluation.metrics if m.name == DRAM]
    assert evaluation.passed, evaluation.reasons
    assert evaluation.solution == attempt.solution
    assert [(m.kernel, m.value) for m in counted] == [("rms_norm", 87.5)]
    assert evaluation.classification is not None
    assert evaluation.classification.bound is Bound.MEMORY
    assert {f.source for f in evaluation.findings} >= {"ncu-rule", "ncu-line"}
    judged = run.script.of("judge")[0]
    assert f"\n{DRAM} = 87.5\n" in judged
    assert f"By these values it is memory-bound: {DRAM} 87.5 % is at least 60 %" in judged
    assert "Long Scoreboard [estimated 1.25x]: Warps wait for memory." in judged
    assert "hot line (90% of samples)" in judged
    planned = run.script.of("planner")[-1]
    assert f"\n#1.{DRAM} = 87.5\n" in planned


def test_a_cpu_says_as_much(run: Run) -> None:
    """Bandwidth and rate against the measured roofline, vectorised loops, threads at work."""
    run.model.write_text(LARGE)
    report = run("cpu")
    assert not run.said("falling back")
    with Store(run.settings.url) as store:
        (attempt, *_) = store.attempts(report.run.id)
        assert attempt.evaluation is not None
        evaluation = store.get_evaluation(attempt.evaluation)
    found, calm = evaluation.classification, steady(evaluation)
    assert found is not None
    judged, planned = run.script.of("judge")[0], run.script.of("planner")[-1]
    names = (
        "achieved_bandwidth", "bandwidth_share", "achieved_flops", "flops_share", "threads_busy",
        "threads_share", "vectorised_loops",
    )  # fmt: skip
    for name in names:
        assert f"\n{name} = " in judged, name
    for reason in found.reasons:
        assert (f"\n#1.{reason.metric} = " in planned) is calm
    assert (f"By these values it is {found}" in judged) is calm
    assert (DISTURBED in judged) is not calm
    assert "kernel.cpp:" in judged.partition("Findings of compiler and profiler:")[2]
