"""What the user asks for becomes a campaign, or one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.campaigns.start import most, of_campaign, parse_arms, plan_campaign
from agentforge.config import load_settings
from agentforge.runs.judging_code import judging_code
from agentforge.schema import Arm, Campaign, UsageError

LLM = "openai:m@http://127.0.0.1:9/v1"


def test_arms_have_names_and_agents() -> None:
    assert parse_arms(()) == (Arm(name="playbook", agent="playbook"),)
    assert parse_arms(("base:playbook", f"big:llm:{LLM}")) == (
        Arm(name="base", agent="playbook"),
        Arm(name="big", agent=LLM),
    )
    assert parse_arms((f"llm:{LLM}",)) == parse_arms((f"llm:llm:{LLM}",)) == (Arm(name="llm", agent=LLM),)
    assert parse_arms(("llm:playbook",)) == (Arm(name="llm", agent="playbook"),)
    forms = ("playbook", "a:other", "a:llm:openai", "llm:openai", ":playbook", "a b:playbook", "a/b:playbook")
    for wrong in forms:
        with pytest.raises(UsageError, match="write NAME:playbook or NAME:llm:PROVIDER:MODEL"):
            parse_arms((wrong,))
    with pytest.raises(UsageError, match="two arms are called 'a'"):
        parse_arms(("a:playbook", f"a:llm:{LLM}"))


def test_the_same_request_is_the_same_campaign(home: Path, problems: Path) -> None:
    def plan(*overrides: str, arm: str = "a:playbook") -> str:
        return plan_campaign(f"folder:{problems}", parse_arms((arm,)), load_settings(overrides))[0].name

    assert plan() == plan()
    names = {plan(), plan("budget.minutes=2"), plan("referee.processes=5"), plan(arm="b:playbook")}
    (problems / "good.py").write_text("x = 1\n")
    assert len({plan(), *names}) == 5


def test_other_code_does_not_make_another_campaign(
    home: Path, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan() -> Campaign:
        return plan_campaign(f"folder:{problems}", parse_arms(()), load_settings())[0]

    here = plan()
    monkeypatch.setattr("agentforge.campaigns.start.judging_code", lambda: "another")
    assert (plan().name, plan().code) == (here.name, "another")
    assert here.code == judging_code()


def test_dollars_are_no_limit_for_a_model_of_unknown_price(home: Path, problems: Path) -> None:
    suite, arms = f"folder:{problems}", parse_arms(("base:playbook", f"big:llm:{LLM}"))
    with pytest.raises(UsageError, match=rf"the price of {LLM} is not known, .*-c llm\.prices=FILE"):
        plan_campaign(suite, arms, load_settings(), dollars=5.0)
    with pytest.raises(UsageError, match="the price of"):
        plan_campaign(suite, arms, load_settings(["budget.dollars=1"]))
    plan_campaign(suite, arms[:1], load_settings(), dollars=5.0)


def test_dollars_are_shared_by_the_runs_that_call_models(home: Path, problems: Path, tmp_path: Path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text(f'[openai]\n"{LLM.partition(":")[2]}" = {{ input = 1.0, output = 5.0 }}\n')
    settings = load_settings(["budget.minutes=1", f"llm.prices={table}"])
    suite = f"folder:{problems}"
    arms = parse_arms(("base:playbook", f"big:llm:{LLM}"))
    campaign, found = plan_campaign(suite, arms, settings, dollars=5.0, limit_minutes=20)
    assert len(found) == 2
    assert campaign.budget.dollars == 2.5
    limits = most(campaign, workers=3)
    assert (limits.runs, limits.seconds, limits.budget_s, limits.dollars) == (4, 2400, 120, 5.0)
    assert most(plan_campaign(suite, arms, settings)[0], 1).dollars is None
    assert most(plan_campaign(suite, arms[:1], settings)[0], 1).dollars == 0
    for wrong in (
        {"limit_minutes": -1.0},
        {"limit_minutes": 0.0},
        {"dollars": float("nan")},
        {"dollars": -1.0},
    ):
        with pytest.raises(UsageError, match="is no limit: give a positive number"):
            plan_campaign(suite, arms[:1], settings, **wrong)
    with pytest.raises(UsageError, match="'tpu' is not one of the devices"):
        plan_campaign(suite, arms, settings, device="tpu")
    with pytest.raises(UsageError, match="is no name"):
        plan_campaign(suite, arms, settings, name="a name")


def test_dollars_that_pay_no_call_are_refused_with_the_sum_that_does(
    home: Path, problems: Path, tmp_path: Path
) -> None:
    table = tmp_path / "prices.toml"
    price = "{ input = 5.0, cache_write = 6.25, output = 25.0 }"
    table.write_text(f'[openai]\n"{LLM.partition(":")[2]}" = {price}\n')
    settings = load_settings([f"llm.prices={table}"])
    suite, arms = f"folder:{problems}", parse_arms(("base:playbook", f"big:llm:{LLM}"))
    says = r"can cost 0\.0881 dollars, and each of the 2 runs .* has 0\.0850: give --dollars 0\.18 or more"
    with pytest.raises(UsageError, match=says):
        plan_campaign(suite, arms, settings, dollars=0.17)
    with pytest.raises(UsageError, match=says):
        plan_campaign(suite, arms, load_settings([f"llm.prices={table}", "budget.dollars=0.085"]))
    assert plan_campaign(suite, arms, settings, dollars=0.18)[0].budget.dollars == 0.09
    plan_campaign(suite, arms[:1], settings, dollars=0.01)


def test_the_campaigns_settings_come_before_the_machines(home: Path, problems: Path) -> None:
    asked = load_settings(["referee.processes=5", "budget.attempts=3"])
    arms = parse_arms((f"big:llm:{LLM}",))
    campaign, _ = plan_campaign(f"folder:{problems}", arms, asked)
    here = load_settings(["referee.processes=7", "referee.threads=1", "search.min_share=0.5", "home=/x"])
    found = of_campaign(campaign, arms[0], here)
    assert (found.referee.processes, found.referee.threads) == (5, 1)
    assert (found.search.min_share, found.search.coder, found.search.judge) == (0.5, LLM, LLM)
    assert (found.budget.attempts, found.home) == (3, Path("/x"))


@pytest.mark.parametrize("asked", [False, True])
def test_a_campaign_measures_torch_compile_only_if_it_can_decide(
    home: Path, problems: Path, *, asked: bool
) -> None:
    given = ["search.prove_compile=true", "referee.quick_compile=true"] if asked else []
    campaign, _ = plan_campaign(f"folder:{problems}", parse_arms(()), load_settings(given))
    found = of_campaign(campaign, campaign.arms[0], load_settings(()))
    assert (found.search.prove_compile, found.referee.quick_compile) == (asked, asked)


@pytest.mark.parametrize(("limit", "seconds"), [(3.0, 162.0), (10.0, 540.0), (60.0, 3540.0)])
def test_a_run_ends_before_the_limit_of_an_item(
    home: Path, problems: Path, limit: float, seconds: float
) -> None:
    settings = load_settings(["budget.minutes=0.5"])
    campaign, _ = plan_campaign(f"folder:{problems}", parse_arms(()), settings, limit_minutes=limit)
    found = of_campaign(campaign, campaign.arms[0], load_settings(()))
    assert found.search.limit_s == seconds


@pytest.mark.parametrize(
    ("arms", "given", "reuses"),
    [(["a:playbook"], [], True), (["a:playbook", "b:playbook"], [], False),
     (["a:playbook", "b:playbook"], ["search.reuse_verdicts=true"], True)],
)  # fmt: skip
def test_arms_do_not_pay_for_each_other(
    home: Path, problems: Path, arms: list[str], given: list[str], *, reuses: bool
) -> None:
    campaign, _ = plan_campaign(f"folder:{problems}", parse_arms(arms), load_settings(given))
    found = of_campaign(campaign, campaign.arms[0], load_settings(()))
    assert found.search.reuse_verdicts is reuses
