"""A candidate that calls torch.compile finds what the compiled baseline compiled, and cannot change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.config import RefereeSettings
from agentforge.referee import Referee
from agentforge.schema import EvaluationStatus, Level
from tests.referee.judging import DEVICE, judge, problem

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
