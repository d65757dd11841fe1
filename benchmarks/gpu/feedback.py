"""Check which hardware counters a run keeps: `optimize` in each sandbox up to stitching, then its store."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentforge.config import load_settings
from agentforge.devices import Fallback
from agentforge.devices.fallbacks import remember
from agentforge.frontends import FrontendOptions
from agentforge.isolation.sandboxes import sandboxes
from agentforge.ladder import find_device
from agentforge.profiling.nsight.metrics import WANTED
from agentforge.runs import ModelStart, start_run
from agentforge.schema import AgentForgeError, Attempt, Event, Progress, StitchStarted
from agentforge.store import Store

TARGET = Path(__file__).resolve().parents[2] / "examples" / "llama_block.py"
_LARGE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x * 0.5, -1)

def get_inputs():
    return [torch.randn({size} // 2, {size})]

def get_init_inputs():
    return []
"""
_ATTEMPTS = 2
_LEAST_S = 120.0


class _Searched(AgentForgeError):
    """The search has ended; stitching would show nothing about counters."""


def large(folder: Path, size: int) -> Path:
    """A model with an input of `size * size * 2` bytes: with 16384, twice the largest sandboxed file."""
    place = folder / "large.py"
    place.write_text(_LARGE.format(size=size))
    return place


def measure(
    left: float,
    search_minutes: Callable[[float], float],
    keep: Callable[[dict[str, Any]], None],
    target: Path = TARGET,
    device: str = "cuda",
) -> dict[str, Any]:
    """Two attempts in each working sandbox, the strongest first, while time is left.

    Args:
        left: seconds.
        search_minutes: minutes of search for a run of that many seconds.
        keep: writes the results so far.
        target: the model to optimize.
        device: its kind.
    """
    names = [name for name in sandboxes.names() if sandboxes.create(name).available().ok]
    end = time.monotonic() + left
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        rest = end - time.monotonic()
        if not found or rest > _LEAST_S:
            found[name] = _in(name, search_minutes(rest), target, device)
            keep({"sandboxes": found})
    ok = all(attempt["by"].get("ncu") for run in found.values() for attempt in run["passed"])
    return {"ok": ok and any(run["passed"] for run in found.values()), "sandboxes": found}


def _in(sandbox: str, minutes: float, target: Path, device: str) -> dict[str, Any]:
    events: list[Event] = []
    error = ""

    def follow(event: Event) -> None:
        events.append(event)
        if isinstance(event, StitchStarted):
            raise _Searched

    with tempfile.TemporaryDirectory(prefix="agentforge-feedback-") as home:
        settings = load_settings(
            [
                f"home={home}",
                f"referee.sandbox={sandbox}",
                f"budget.attempts={_ATTEMPTS}",
                f"budget.minutes={minutes:.2f}",
            ]
        )
        try:
            if device == "cuda":  # its ladder was climbed already
                gpu = find_device(device, load_settings([]).cache)
                remember(gpu, settings.cache, map(Fallback, gpu.fallbacks))
            start_run(ModelStart(str(target), FrontendOptions()), settings, device=device, on_event=follow)
        except _Searched:
            pass
        except AgentForgeError as failure:
            error = str(failure)
        with Store(settings.url) as store:
            attempts = [a for run in store.list_runs() for a in store.attempts(run.id)]
            passed = [found for a in attempts if (found := _kept(store, a)) is not None]
    said = [e.text for e in events if isinstance(e, Progress)]
    refused = [text for text in said if "falling back" in text]
    return {"error": error, "refused": refused, "attempts": len(attempts), "passed": passed}


def _kept(store: Store, attempt: Attempt) -> dict[str, Any] | None:
    """What the store has recorded of an attempt that passed."""
    if attempt.evaluation is None:
        return None
    evaluation = store.get_evaluation(attempt.evaluation)
    if not evaluation.passed:
        return None
    collected = {m.name for m in evaluation.metrics if m.source == "ncu"}
    return {
        "strategy": attempt.plan.strategy if attempt.plan else "",
        "seconds": attempt.usage.seconds,
        "by": dict(Counter(m.source for m in evaluation.metrics)),
        "own": [k.name for k in evaluation.kernels if k.own],
        "profiled": sorted({m.kernel for m in evaluation.metrics if m.source == "ncu"}),
        "missing": [name for name in WANTED if name not in collected],
        "class": str(evaluation.classification or ""),
        "findings": [str(f) for f in evaluation.findings][:16],
        "cause": attempt.critique.cause if attempt.critique else "",
    }
