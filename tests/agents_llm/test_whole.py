"""A language model plans the whole over the wire, once, whatever interrupts the run."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from agentforge.agents import create_model_planner
from agentforge.config import LLMSettings
from agentforge.llm import Ledger
from agentforge.loop import Journal
from agentforge.loop.whole import PLANNED, plan_model
from agentforge.store import Store
from tests.llm.server import LLMServer
from tests.loop.conftest import make_run

from .scene import HARDWARE, Script, bottleneck, profile


class Killed(BaseException):
    """Ends the run where it is raised."""


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_it_is_planned_and_paid_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire: str) -> None:
    for name in ("ANTHROPIC_API_KEY", "AGENTFORGE_LLM_API_KEY"):
        monkeypatch.setenv(name, "sk-none")
    small, large = bottleneck(64, 67), bottleneck(1024, 2051)
    whole = profile().model_copy(update={"bottlenecks": (large, small)})
    priors = {b.definition.hash: 0.5 for b in whole.bottlenecks}
    with (
        LLMServer(Script(deque())) as server,
        Store(f"sqlite:///{tmp_path / 'a.db'}") as store,
    ):
        store.create_run(make_run())
        spec = f"anthropic:m@{server.root}" if wire == "anthropic" else f"openai:m@{server.url}"

        def planned() -> tuple[str, ...]:
            journal = Journal(store, store.get_run("run"))
            planner = create_model_planner(spec, Ledger(store, "run"), LLMSettings(retries=0))
            plan = plan_model(planner, whole, HARDWARE, priors, journal)
            assert plan.author == spec
            return tuple(region.bottleneck for region in plan.regions)

        def killed(kind: str, **_: object) -> None:
            raise Killed(kind)

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "event", lambda _, kind, **data: killed(kind, **data))
            with pytest.raises(Killed, match=PLANNED):
                planned()
        order = tuple(b.definition.hash for b in (small, large))
        assert planned() == order
        assert planned() == order
        assert len(server.seen) == 1
        assert [(c.role, c.attempt, c.status) for c in store.calls("run")] == [("planner", "", "answered")]
