"""From what the user asks for to a campaign: arms, limits, a name, and the most it can take."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agentforge._version import __version__
from agentforge.agents import agents_in, check_agents
from agentforge.config import LLMSettings, RefereeSettings, SearchSettings, Settings
from agentforge.devices import devices
from agentforge.runs.checks import check_run
from agentforge.runs.judging_code import judging_code
from agentforge.runs.run_settings import limited, restored, with_search
from agentforge.schema import Arm, Campaign, RunSettings, SuiteProblem, UsageError, content_hash, expanded

from .suites import Selection, open_suite, selected

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a campaign or an arm may be called; the names of runs fit too."""
HIDDEN = "//HOST"
"""In the URL of a model of a published campaign, in the place of the machine that serves it."""
_FIXED_S, _PER_BUDGET = 600.0, 3.0
"""The default limit of an item: time for loading, ceilings and stitching, and a multiple of its budget."""

_PROMPT_TOKENS = 10_000
"""Tokens of a coder's prompt, about."""

_LOADING_S, _LOADING = 60.0, 0.1
"""Seconds of an item in which its model is loaded, and the most of them as a share of its limit."""


@dataclass(frozen=True)
class Most:
    """The most that a campaign can take."""

    runs: int
    seconds: float
    """Wall time, if every item takes its whole limit."""
    budget_s: float | None
    """Wall time of all search budgets; None if they have no limit of time."""
    dollars: float | None
    """None if language models work without a limit of dollars."""


def parse_arms(texts: Sequence[str]) -> tuple[Arm, ...]:
    """Arms from `NAME:playbook` and `NAME:llm:PROVIDER:MODEL`; the playbook if there is none.

    `llm:PROVIDER:MODEL` is an arm with the name `llm`.

    Raises:
        UsageError: a text has another form, or a name is given twice.
    """
    arms: list[Arm] = []
    for text in texts or ("playbook:playbook",):
        name, _, agent = text.partition(":")
        if name == "llm" and ":" in agent and not agent.startswith("llm:"):
            agent = f"llm:{agent}"
        model = agent.removeprefix("llm:")
        if not NAME.fullmatch(name) or (agent != "playbook" and (model == agent or ":" not in model)):
            raise UsageError(
                f"--arm {text!r} has the wrong form: write NAME:playbook or NAME:llm:PROVIDER:MODEL"
            )
        if name in (arm.name for arm in arms):
            raise UsageError(f"two arms are called {name!r}: give each arm its own name")
        arms.append(Arm(name=name, agent=model))
    return tuple(arms)


def plan_campaign(
    suite: str,
    arms: tuple[Arm, ...],
    settings: Settings,
    *,
    selection: Selection = Selection(),
    dollars: float | None = None,
    limit_minutes: float | None = None,
    device: str = "auto",
    name: str = "",
) -> tuple[Campaign, tuple[SuiteProblem, ...]]:
    """A campaign and its problems; nothing is stored or run.

    Args:
        settings: their budget is that of each run.
        dollars: of all runs together; each run with a language model gets an equal share.
        limit_minutes: wall time of one item; None derives it from the budget.
        name: None derives it from the suite and all that decides what the campaign measures.

    Raises:
        UsageError, MachineError: the suite, a name, a setting, an agent or a kind of device cannot be used,
            or dollars are limited and the price of a model is unknown, or a run's dollars pay no call of it.
    """
    if device != "auto":
        devices.check(device)
    problems = selected(open_suite(suite), selection)
    check_run(settings, None)
    paid = len(problems) * sum(arm.paid for arm in arms)
    budget = settings.budget
    if dollars is not None:
        check_positive("--dollars", dollars)
        budget = limited(budget, {"dollars": dollars / paid if paid else 0.0})
    for arm in arms:
        of_arm = for_arm(settings, arm)
        check_agents(of_arm.search, of_arm.llm, budget)
        if budget.dollars is not None:
            _check_share(budget.dollars, arm, settings.llm, paid)
    minutes = limit_minutes
    if minutes is None:
        minutes = (_FIXED_S + _PER_BUDGET * 60 * (budget.minutes or 10)) / 60
    check_positive("--limit-minutes", minutes)
    campaign = Campaign(
        name=name or "unnamed",
        suite=located(suite),
        problems=len(problems),
        problems_hash=Campaign.hash_of(problems),
        arms=arms,
        budget=budget,
        limit_s=60 * minutes,
        device=device,
        settings=_given(settings),
        version=__version__,
        code=judging_code(),
        created=datetime.now(UTC),
    )
    if not name:
        decides = campaign.model_dump(mode="json", exclude={"name", "created", "state", "code"})
        kind = suite.partition(":")[0]
        campaign = campaign.model_copy(update={"name": f"{kind}-{content_hash(decides, length=6)}"})
    if not NAME.fullmatch(campaign.name):
        raise UsageError(f"--name {name!r} is no name: use letters, digits, '.', '_' and '-', at most 64")
    return campaign, problems


def _check_share(share: float, arm: Arm, settings: LLMSettings, runs: int) -> None:
    """Refuse a share of the dollars that pays no call of a coder.

    Raises:
        UsageError: says what all runs need.
    """
    from agentforge.llm import LEAST_TOKENS, Prices, open_model

    prices = Prices(settings.prices)
    for spec in (agent for agent in agents_in(arm.agent) if ":" in agent):
        price = prices.of_model(open_model(spec, settings))
        least = price.most(_PROMPT_TOKENS, LEAST_TOKENS) if price else 0.0
        if share < least:
            needed = math.ceil(100 * least * runs) / 100
            raise UsageError(
                f"a call to {spec} can cost {least:.4f} dollars, and each of the {runs} runs with a model "
                f"has {share:.4f}: give --dollars {needed:.2f} or more, or choose fewer problems"
            )


def check_positive(option: str, value: float) -> None:
    """Refuse a limit that is none.

    Raises:
        UsageError: it is not positive, or not finite.
    """
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{option} {value:g} is no limit: give a positive number")


def check_version(campaign: Campaign) -> None:
    """Refuse to add figures of another version to a campaign.

    Raises:
        UsageError: another version of AgentForge started it.
    """
    if campaign.version != __version__:
        raise UsageError(
            f"campaign {campaign.name} was started by agentforge {campaign.version}, and this is "
            f"{__version__}: install {campaign.version} on this machine, or start a new campaign"
        )


def check_served(campaign: Campaign, arms: Iterable[str]) -> None:
    """Refuse to work for some arms of a campaign that was imported from a published file.

    Raises:
        UsageError: the file does not say which machine serves the model of one of them.
    """
    cut = {arm.name for arm in campaign.arms if HIDDEN in arm.agent}.intersection(arms)
    if cut:
        raise UsageError(
            f"the file of campaign {campaign.name} does not say which machine serves the model of arm "
            f"{min(cut)}: export it with --solutions, and import that file"
        )


def most(campaign: Campaign, workers: int) -> Most:
    """The most that a campaign can take with a number of workers, each on a machine of its own or not."""
    runs = campaign.problems * len(campaign.arms)
    rounds = math.ceil(runs / max(1, workers))
    paid = campaign.problems * sum(arm.paid for arm in campaign.arms)
    share = campaign.budget.dollars
    return Most(
        runs=runs,
        seconds=rounds * campaign.limit_s,
        budget_s=rounds * campaign.budget.minutes * 60 if campaign.budget.minutes else None,
        dollars=0.0 if not paid else None if share is None else share * paid,
    )


def for_arm(settings: Settings, arm: Arm) -> Settings:
    """Settings under which an arm's agents work."""
    return with_search(settings, planner=arm.agent, coder=arm.agent, judge=arm.agent)


def of_campaign(campaign: Campaign, arm: Arm, settings: Settings) -> Settings:
    """The campaign's settings, completed by those of this machine."""
    kept = campaign.settings
    search = {
        "prove_compile": False,
        "limit_s": campaign.limit_s - min(_LOADING_S, _LOADING * campaign.limit_s),
        "reuse_verdicts": len(campaign.arms) == 1,  # else the arm that comes later would pay less
        **kept.search,
    }
    first = settings.model_copy(
        update={
            "search": SearchSettings.model_validate(search),
            "referee": RefereeSettings.model_validate({"quick_compile": False, **kept.referee}),
            "llm": LLMSettings.model_validate(kept.llm),
            "budget": campaign.budget,
        }
    )
    return for_arm(restored(_given(settings), first), arm)


def _given(settings: Settings) -> RunSettings:
    """What is set explicitly: a machine's own defaults, such as its threads, do not travel."""
    parts = ("search", "referee", "llm")
    return RunSettings(
        **{part: getattr(settings, part).model_dump(mode="json", exclude_unset=True) for part in parts}
    )


def located(suite: str) -> str:
    """The suite with an absolute path, if it names one."""
    kind, _, place = suite.partition(":")
    path = expanded(place).absolute()
    return f"{kind}:{path}" if path.exists() else suite
