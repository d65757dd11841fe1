"""A language model plans the whole over the wire, once, whatever interrupts the run."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path

import pytest

from agentforge.agents import ModelContext, create_model_planner
from agentforge.agents.llm.model_planner import LLMModelPlanner
from agentforge.agents.llm.role import Role
from agentforge.config import LLMSettings, SearchSettings, Settings
from agentforge.llm import Ledger, Request, Response
from agentforge.loop import RunLog
from agentforge.loop.model_plan import plan_model
from agentforge.runs.execution import create_agents
from agentforge.schema import Bottleneck, ModelPlan, Profile, RunRecord
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
            run_log = RunLog(store, store.get_run("run"))
            planner = create_model_planner(spec, Ledger(store, "run"), LLMSettings(retries=0))
            plan, _ = plan_model(planner, whole, HARDWARE, priors, run_log)
            assert plan.author == spec
            return tuple(region.bottleneck for region in plan.regions)

        def killed(_: RunLog, record: RunRecord) -> None:
            raise Killed(type(record).__name__)

        with monkeypatch.context() as patch:
            patch.setattr(RunLog, "keep", killed)
            with pytest.raises(Killed, match="ModelPlan"):
                planned()
        order = tuple(b.definition.hash for b in (small, large))
        assert planned() == order
        assert planned() == order
        assert len(server.seen) == 1
        assert [(c.role, c.attempt, c.status) for c in store.calls("run")] == [("planner", "", "answered")]


def test_its_dollars_are_spent_although_it_makes_no_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTFORGE_LLM_API_KEY", "sk-none")
    small, large = bottleneck(64, 67), bottleneck(1024, 2051)
    whole = profile().model_copy(update={"bottlenecks": (large, small)})
    with LLMServer(Script(deque())) as server, Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        table = tmp_path / "prices.toml"
        table.write_text(f'[openai]\n"m@{server.url}" = {{ input = 1000.0, output = 1000.0 }}\n')
        search = SearchSettings(planner=f"openai:m@{server.url}")
        settings = Settings(home=tmp_path, search=search, llm=LLMSettings(retries=0, prices=table))
        run_log = RunLog(store, store.get_run("run"))
        planner = create_agents(settings, run_log).model_planner
        assert planner is not None
        planner.plan_model(ModelContext(whole, HARDWARE, {b.definition.hash: 0.5 for b in whole.bottlenecks}))
        assert run_log.dollars() == pytest.approx(sum(server.billed[0]) / 1000)


def _with_merges() -> Profile:
    """Two regions of different nodes, and two possible merges that share a part."""
    parts = [_placed(bottleneck(rows, 67), (f"n{rows}",)) for rows in (64, 128)]
    both = _placed(bottleneck(256, 67), ("n64", "n128"))
    one = _placed(bottleneck(512, 67), ("n128",))
    return profile().model_copy(update={"bottlenecks": tuple(parts), "merges": (both, one)})


def _placed(b: Bottleneck, nodes: tuple[str, ...]) -> Bottleneck:
    name = f"region_{b.workloads[0].name}"
    site = b.call_sites[0].model_copy(update={"nodes": nodes, "name": name})
    definition = b.definition.model_copy(update={"name": name})
    return b.model_copy(update={"call_sites": (site,), "definition": definition})


class Answers:
    """A model that gives these answers, and keeps what it was asked."""

    spec, model, endpoint, price = "openai:m@nowhere", "m", "nowhere", None

    def __init__(self, *merges: list[str]) -> None:
        self.merges, self.asked = list(merges), list[str]()

    def complete(self, request: Request) -> Response:
        self.asked.append(request.messages[-1].text)
        merges = self.merges.pop(0)
        region = {"name": "region_64x67", "fuse": True, "expected_speedup": 1.5, "why": "so"}
        named = {**region, "name": merges[0]} if merges else region
        answer = {
            "diagnosis": "it moves too much",
            "evidence": [{"metric": "region_64x67.time_s", "value": 4e-3}],
            "merges": merges,
            "regions": [named, {**region, "expected_speedup": 2.0}],
        }
        answer["regions"] = answer["regions"] if merges else [named]
        return Response(text=json.dumps(answer), model="m")


def _planned(tmp_path: Path, model: Answers) -> ModelPlan:
    whole = _with_merges()
    with Store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        store.create_run(make_run())
        role = Role("planner", model, Ledger(store, "run"), LLMSettings())
        return LLMModelPlanner(role).plan_model(ModelContext(whole, HARDWARE, {}))


def test_a_merge_is_planned_in_the_place_of_its_parts(tmp_path: Path) -> None:
    model = Answers(["region_256x67"])
    plan = _planned(tmp_path, model)
    whole = _with_merges()
    assert "- `region_256x67`: region_128x67 + region_64x67, 1 place" in model.asked[0]
    assert plan.merges == (whole.merges[0].definition.hash,)
    assert [r.name for r in plan.regions] == ["region_256x67"]
    assert len(whole.merged(plan.merges).bottlenecks) == 1


def test_merges_that_share_a_part_or_do_not_exist_are_sent_back(tmp_path: Path) -> None:
    model = Answers(["region_256x67", "region_512x67"], ["region_1x1"], [])
    plan = _planned(tmp_path, model)
    assert "share a part" in model.asked[1]
    assert "there is no possible merge 'region_1x1'" in model.asked[2]
    assert plan.merges == ()
    assert sorted(r.name for r in plan.regions) == ["region_128x67", "region_64x67"]
