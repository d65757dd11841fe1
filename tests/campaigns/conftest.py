"""Campaigns over small files, in a home of their own, with the agents of `tests.runs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agentforge.schema import (
    Evidence,
    Interval,
    LLMCall,
    ReasonCode,
    RunStatus,
    Solution,
    StitchResult,
    SuiteProblem,
    TryOutcome,
)
from agentforge.store import Store
from tests.runs.conftest import MODEL
from tests.store import nouns

PROBLEMS = ("level1/1_a", "level1/2_b", "level2/1_c", "level2/10_d")
BROKEN = "import a_package_that_is_nowhere\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("AGENTFORGE_HOME", str(folder))
    monkeypatch.delenv("AGENTFORGE_DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    folder = tmp_path / "problems"
    folder.mkdir()
    (folder / "good.py").write_text(MODEL)
    (folder / "broken.py").write_text(BROKEN)
    return folder


def finish(
    store: Store,
    item_run: str,
    *,
    speedup: float | None,
    mode: str = "kernels",
    weak: bool = False,
    solution: Solution | None = None,
    each: Mapping[str, float] | None = None,
) -> None:
    """A finished run; its stitched model is `speedup` times as fast as eager, and half that over compile.

    Args:
        each: the speedup of each workload, if there are several.
    """
    run = nouns.run(item_run, target=nouns.definition().hash, status=RunStatus.FINISHED)
    store.create_run(run)
    stored = store.save_solution(solution or nouns.solution())
    evaluation = nouns.evaluation(speedup=speedup or 1.0)
    assert evaluation.performance is not None
    ends = {"eager": (speedup or 1.0, 1.0), "compile": ((speedup or 1.0) / 2, 0.5)}
    performance = evaluation.performance.model_copy(
        update={
            "baseline_s": {name: point for name, (point, _) in ends.items()},
            "speedup": {name: _about(point) for name, (point, _) in ends.items()},
            "workload_s": {w: {"candidate": 1 / s, "eager": 1.0} for w, s in (each or {}).items()},
            "workload_speedup": {
                w: {"eager": _about(s), "compile": _about(s / 2)} for w, s in (each or {}).items()
            },
        }
    )
    if weak:
        changes = {"evidence": Evidence.SUSPICIOUS, "reasons": ("weak",), "codes": (ReasonCode.WEAK_TASK,)}
        evaluation = evaluation.model_copy(update=changes)
    evaluation = evaluation.model_copy(update={"performance": performance})
    identifier = store.save_evaluation(evaluation, item_run)
    kept = mode in ("eager", "compile")
    store.save_record(
        item_run,
        StitchResult(
            mode=mode,
            summary=f"{mode} is kept" if kept else "kernels won",
            proven=not kept and not weak,
            solution=stored,
            evaluation=None if mode == "eager" else identifier,
        ),
    )


def _about(point: float) -> Interval:
    return Interval(point=point, low=point * 0.9, high=point * 1.1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Arm `base`: 3x, 1.05x, torch.compile kept, failed. Arm `llm`: 6x, eager kept, weak, still waiting."""
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as opened:
        made, _ = nouns.campaign(len(PROBLEMS), suite="kernelbench:/x")
        groups = [(name, name.partition("/")[0]) for name in PROBLEMS]
        opened.create_campaign(
            made, [SuiteProblem(id=i, group=g, target="x.py", source="x = 1") for i, g in groups]
        )
        results = {
            ("level1/1_a", "base"): {"speedup": 3.0},
            ("level1/1_a", "llm"): {"speedup": 6.0},
            ("level1/2_b", "base"): {"speedup": 1.05},
            ("level1/2_b", "llm"): {"speedup": None, "mode": "eager"},
            ("level2/1_c", "base"): {"speedup": 1.5, "mode": "compile"},
            ("level2/1_c", "llm"): {"speedup": 2.0, "weak": True},
        }
        for _ in range(7):
            item = opened.take_item("night", "host:1", 600)
            assert item is not None
            result = results.get((item.problem, item.arm))
            if result is None:
                opened.end_item(item, TryOutcome.FAILED, "it does not import")
                continue
            finish(opened, f"run-{item.id}", **result)  # type: ignore[arg-type]
            opened.attach_run(item, f"run-{item.id}")
            opened.end_item(item, TryOutcome.DONE)
        call = {"run": "run-2", "role": "coder", "model": "openai:m", "prompt": "p", "status": "answered"}
        numbers = {"tokens_in": 100, "tokens_out": 50, "dollars": 0.5, "time": nouns.NOW}
        opened.save_call(LLMCall.model_validate({"key": "k", **call, **numbers}))
        yield opened
