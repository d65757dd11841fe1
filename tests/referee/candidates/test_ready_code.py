"""A candidate that calls torch.compile finds what the compiled baseline compiled, and cannot change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.config import RefereeSettings
from agentforge.referee import Referee
from agentforge.referee.checks.correctness import layouts
from agentforge.schema import EvaluationStatus, Level
from tests.referee.judging import DEVICE, WORKLOAD, judge, problem, solution_of, stage

pytestmark = pytest.mark.slow

DEFINITION = problem("return torch.tanh(x) * torch.sigmoid(x + 1)", "torch.randn(64, 64)")
TELLS = """
        import os, pathlib
        import torch._dynamo.utils
        compiled = torch.compile(lambda x: torch.tanh(x) * torch.sigmoid(x + 1))
        compiled(x)
        links = [p for p in pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).rglob("*") if p.is_symlink()]
        written = 0
        for link in links:
            for act in (lambda: open(link, "ab"), lambda: os.unlink(os.readlink(link))):
                try:
                    act()
                    written += 1
                except OSError:
                    pass
        hits = torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"]
        raise RuntimeError(f"hits: {hits}, links: {len(links) > 0}, written: {written}")
"""


def test_what_the_baseline_compiled_is_read_and_not_changed(tmp_path: Path) -> None:
    settings = RefereeSettings(threads=2, quick_seconds=0.2, quick_blocks=2, task_seconds=0)
    with Referee(settings, device=DEVICE, cache=tmp_path / "cache") as referee:
        alone = judge(referee, DEFINITION, ("import torch\n", "import torch\n# calls torch.compile\n"))
        assert alone.passed, alone.reasons
        told = judge(
            referee,
            DEFINITION,
            ("        return torch.tanh(x) * torch.sigmoid(x + 1)", TELLS),
            level=Level.QUICK,
        )
    assert told.status is EvaluationStatus.RUNTIME_ERROR
    assert "links: True, written: 0" in told.reasons[0]
    assert "hits: 1" in told.reasons[0]


def test_a_process_with_another_number_of_threads_runs_the_same_compiled_code(tmp_path: Path) -> None:
    compiled = ("return torch.tanh(x)", "return torch.compile(lambda x: torch.tanh(x) * 3)(x) / 3")
    solution = solution_of(DEFINITION, compiled)
    settings = RefereeSettings(threads=2, task_seconds=0, compile_baseline=False)
    with Referee(settings, device=DEVICE, cache=tmp_path / "cache") as referee:
        baselines = referee.baselines(DEFINITION, [WORKLOAD])
        builder = referee._candidate_builder(solution)
        folder, _ = builder.build(solution)
        found = []
        for threads in (2, 1, 5):
            like = builder.like(settings.model_copy(update={"threads": threads}))
            candidate = like.start(solution, folder, baselines, baselines.prepared[0])
            candidate.client.call(0)
            candidate.pass_on()
            found.append({path.name for path in builder.compiled.folder.rglob("*.cpp")})
        assert found[0] and found == [found[0]] * 3
        builder.close()
        assert not builder.compiled.there


def test_a_call_that_may_compile_has_the_time_of_a_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layouts, "_COMPILING_S", 0.0)
    settings = RefereeSettings(
        threads=2, task_seconds=0, compile_baseline=False, call_timeout_s=4, random_seeds=1, patience_s=0,
        full_blocks=4, full_seconds=0.1,
    )  # fmt: skip
    waits = """import time
        self.calls = getattr(self, "calls", 0) + 1
        time.sleep(6 * (self.calls == 2))  # a first call has more time anyway
        return torch.tanh(x)"""
    slow = ("return torch.tanh(x)", waits)
    compiler = ("import torch\n", "import torch\n# calls torch.compile\n")
    with Referee(settings, device=DEVICE, cache=tmp_path / "cache") as referee:
        assert judge(referee, DEFINITION, slow).status is EvaluationStatus.TIMEOUT
        verdict = judge(referee, DEFINITION, slow, compiler, level=Level.FULL)
    assert verdict.passed, verdict.reasons
    assert "11 not tried, because compiling took long" in stage(verdict, "variants").detail
