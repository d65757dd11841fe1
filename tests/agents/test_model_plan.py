"""The plan for a whole model: by Amdahl's law, or by a language model that is held to what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentforge.agents import ModelContext, ModelPlanner, create_model_planner
from agentforge.agents.llm import LLMModelPlanner
from agentforge.agents.llm.role import Role
from agentforge.agents.playbook.model_planner import PlaybookModelPlanner
from agentforge.config import LLMSettings
from agentforge.llm import CallFailed, Ledger, Recorder, Replay
from agentforge.schema import Bottleneck, MoveKind, Profile
from agentforge.store import Store
from tests.agents.llm.scene import HARDWARE, Scripted
from tests.loop.scripted import bottleneck, profile

LARGE = bottleneck("large", time_s=4.0, gain_s=2.0, sol_s=1.0, share=0.4)
LIKELY = bottleneck("likely", time_s=2.0, gain_s=1.5, sol_s=0.5, share=0.2)
LIBRARY = bottleneck("library", time_s=3.0, gain_s=2.9, sol_s=1.0, share=0.3, optimizable=False)
DONE = bottleneck("done", time_s=1.0, gain_s=0.0, sol_s=1.0, share=0.1)
LOCAL = "openai:m@http://127.0.0.1:1/v1"
REGIONS = (LARGE, LIBRARY, LIKELY, DONE)


def whole(*regions: Bottleneck, **success: float) -> ModelContext:
    found: Profile = profile(*(regions or REGIONS))
    named = {b.definition.name: b.definition.hash for b in found.bottlenecks}
    return ModelContext(found, HARDWARE, {named[name]: p for name, p in success.items()})


def names(plan: Any, *, fuse: bool) -> list[str]:
    return [region.name for region in plan.regions if region.fuse is fuse]


def test_the_playbook_orders_by_what_can_be_expected_and_leaves_the_rest() -> None:
    planner: ModelPlanner = PlaybookModelPlanner()
    plan = planner.plan_model(whole(large=0.5, likely=0.9))
    assert names(plan, fuse=True) == ["likely", "large"]  # 1.5 x 0.9 against 2.0 x 0.5
    assert names(plan, fuse=False) == ["library", "done"]
    assert [r.why for r in plan.regions[2:]] == [
        "its operators have to stay as they are",
        "nothing is left to gain",
    ]
    assert plan.expected_speedup == pytest.approx(10.0 / (10.0 - 3.5))
    assert {r.name: r.expected_speedup for r in plan.regions}["large"] == pytest.approx(2.0)
    assert plan.evidence[0].value == 1.5


def test_regions_that_took_longer_alone_than_in_the_model_promise_no_more_than_each_of_them() -> None:
    shown = whole(LARGE, LIKELY)
    short = ModelContext(shown.profile.model_copy(update={"total_s": 3.0}), HARDWARE, {})
    assert PlaybookModelPlanner().plan_model(short).expected_speedup == pytest.approx(6.0 / 2.5)


def test_moves_are_proposed_by_what_the_profile_has() -> None:
    site = LARGE.call_sites[0].model_copy(
        update={"operators": ("aten.conv2d.default", "aten.batch_norm.default", "aten.silu.default")}
    )
    net = LARGE.model_copy(update={"call_sites": (site,)})
    shared = LIBRARY.definition.model_copy(update={"op_type": "gemm"})
    found = profile(net).model_copy(update={"merges": (LIBRARY.model_copy(update={"definition": shared}),)})
    plan = PlaybookModelPlanner().plan_model(ModelContext(found, HARDWARE, {}))
    assert [move.kind for move in plan.moves] == list(MoveKind)
    assert plan.moves[2].why == "convolutions take 4e+03 ms"
    plain = PlaybookModelPlanner().plan_model(whole())
    assert [move.kind for move in plain.moves] == ["fold_constants"]


def test_a_model_chooses_among_the_moves(store: Store) -> None:
    model = Scripted(
        answer(region("large"), moves=["channels_last"]),
        answer(region("large"), moves=["fold_constants"]),
    )
    assert [move.kind for move in ask(store, model).moves] == ["fold_constants"]
    assert "`fold_constants`: " in model.asked[0].messages[0].text
    assert "no possible move 'channels_last'" in model.asked[1].messages[-1].text


def test_nothing_to_plan_is_a_plan() -> None:
    assert PlaybookModelPlanner().plan_model(ModelContext(profile(), HARDWARE, {})).regions == ()


def answer(*regions: dict[str, Any], **changes: Any) -> str:
    evidence = [{"metric": "large.share", "value": 0.4}]
    return json.dumps({"diagnosis": "norms", "evidence": evidence, "regions": regions, **changes})


def region(name: str, fuse: bool = True, speedup: float = 1.5) -> dict[str, Any]:
    return {"name": name, "fuse": fuse, "expected_speedup": speedup if fuse else 1.0, "why": "so"}


def ask(store: Store, model: Scripted, what: ModelContext | None = None) -> Any:
    role = Role("planner", model, Ledger(store, "run"), LLMSettings())
    return LLMModelPlanner(role).plan_model(what or whole())


def test_a_models_order_is_kept_and_what_it_forgets_comes_after(store: Store) -> None:
    model = Scripted(answer(region("library"), region("large", fuse=False)))
    plan = ask(store, model)
    assert names(plan, fuse=True) == ["library", "likely"]
    assert names(plan, fuse=False) == ["large", "done"]
    assert plan.author == model.spec
    assert plan.usage.dollars is not None
    assert [c.role for c in store.calls("run")] == ["planner"]
    prompt = model.asked[0].messages[0].text
    assert "`library`: pointwise, 1 call site, " in prompt
    assert "computed by the vendor's library" in prompt
    assert "large.gain_s = 2" in prompt
    assert "whole PyTorch model" in model.asked[0].system[0]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (answer(region("nowhere")), "no region 'nowhere'"),
        (answer(region("large"), region("large")), "named 2 times"),
        (answer(region("large", speedup=9.0)), "4x is its speed of light"),
        (answer(region("large", fuse=False)), "every region is left"),
        (answer(region("large"), evidence=[{"metric": "large.share", "value": 0.9}]), "measured as 0.4"),
        ("no idea", "JSON"),
    ],
)
def test_what_does_not_hold_is_sent_back(store: Store, bad: str, says: str) -> None:
    model = Scripted(bad, answer(region("likely")))
    plan = ask(store, model)
    assert says in model.asked[1].messages[-1].text
    assert names(plan, fuse=True)[0] == "likely"


def test_no_answer_that_holds_is_a_failed_call(store: Store) -> None:
    with pytest.raises(CallFailed, match="did not do"):
        ask(store, Scripted(*[answer(region("nowhere"))] * 3))


def test_regions_of_one_name_are_told_apart_and_most_are_not_shown(store: Store) -> None:
    twins = [bottleneck("twin", time_s=1.0 + n, gain_s=1.0 + n, sol_s=0.1) for n in range(30)]
    model = Scripted(answer(region("twin#2"), evidence=[{"metric": "total_s", "value": 465.0}]))
    plan = ask(store, model, whole(*(b.model_copy(update={"definition": b.definition.model_copy(
        update={"reference": f"# {n}"})}) for n, b in enumerate(twins))))  # fmt: skip
    assert "6 smaller regions are not shown" in model.asked[0].messages[0].text
    assert len(plan.regions) == 30
    assert plan.regions[0].bottleneck != plan.regions[1].bottleneck


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("playbook", PlaybookModelPlanner),
        (f"playbook,{LOCAL}", PlaybookModelPlanner),
        (LOCAL, LLMModelPlanner),
    ],
)
def test_the_first_planner_plans_the_whole(store: Store, spec: str, kind: type) -> None:
    assert isinstance(create_model_planner(spec, Ledger(store, "run")), kind)


def test_a_replay_finds_the_plan_although_another_measurement_orders_the_regions(
    store: Store, tmp_path: Path
) -> None:
    said = answer(region("likely"), evidence=[{"metric": "large.share", "value": 0.4}])
    recorder = Recorder(Scripted(said), tmp_path / "run.jsonl")
    role = Role("planner", recorder, Ledger(store, "run"), LLMSettings())
    first = LLMModelPlanner(role).plan_model(whole(LARGE, LIKELY))
    slower = LIKELY.model_copy(update={"time_s": 8.1, "gain_s": 7.9, "sol_s": 0.0051})
    replay = Role("planner", Replay(str(tmp_path / "run.jsonl")), Ledger(store, "run"), LLMSettings())
    again = LLMModelPlanner(replay).plan_model(whole(slower, LARGE))
    assert names(again, fuse=True) == names(first, fuse=True)


def test_a_prior_is_not_shown_as_a_measurement(store: Store) -> None:
    model = Scripted(answer(region("likely")))
    ask(store, model)
    prompt = model.asked[0].messages[0].text
    assert "earlier attempts" not in prompt
    assert "probability" not in prompt
