"""Create agents from a registered name or a language model's specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentforge.config import LLMSettings, SearchSettings
from agentforge.schema import Budget, UsageError

from ._base import (
    AgentOptions,
    Author,
    Coder,
    Editor,
    Judge,
    ModelPlanner,
    Planner,
    authors,
    coders,
    judges,
    model_planners,
    planners,
)
from .bandit import BanditCoder, arms_of
from .chain import ChainCoder, ChainJudge, ChainPlanner

if TYPE_CHECKING:
    from agentforge.llm import Ledger

    from .llm.role import Role


def check_agents(search: SearchSettings, settings: LLMSettings, budget: Budget | None = None) -> None:
    """Raise at once, before profiling starts, if an agent cannot be created.

    Args:
        budget: of a run; None has no limit.

    Raises:
        UsageError: no such name or provider, no key, no such price table, or dollars are limited and a
            model's price is unknown; or the playbook shall judge alone what models plan and write.
        MachineError: the provider's package is missing.
    """
    from agentforge.llm import Prices, forms, open_model

    models: list[str] = []
    for registry, specs in ((planners, search.planner), (coders, search.coder), (judges, search.judge)):
        for spec in agents_in(specs) if registry is coders else _parts(specs):
            if ":" in spec:
                models.append(spec)
            elif spec in registry.names():
                registry.check(spec, search.agent_options.get(spec))
            else:
                raise UsageError(f"there is none of the {registry.point} called {spec!r}: write {forms()}")
    if search.directives and not all(":" in spec for spec in agents_in(search.coder)):
        raise UsageError(
            f"search.directives changes the prompt of language models, and the coder is {search.coder!r}: "
            "name only language models with --coder"
        )
    modelled = all(any(":" in s for s in agents_in(role)) for role in (search.planner, search.coder))
    if modelled and search.judge == "playbook":
        raise UsageError(
            "language models plan and write kernels, and the playbook's rules judge only what the playbook "
            f"writes: add --judge {models[0]}"
        )
    limited = budget is not None and budget.dollars is not None
    prices = Prices(settings.prices)  # every run reads them
    for spec in dict.fromkeys(models):
        model = open_model(spec, settings)
        if limited:
            prices.check(model)


def create_planner(
    spec: str,
    ledger: Ledger | None = None,
    settings: LLMSettings | None = None,
    options: AgentOptions | None = None,
) -> Planner:
    """Create a planner.

    Args:
        spec: a registered name (`playbook`), or a model: `anthropic:MODEL`, `openai:MODEL`,
            `openai:MODEL@URL`, `replay:FILE`; or several of them with commas, the cheapest first.
        ledger: journal and budget of the run's model calls; required for a model.
        options: setting `search.agent_options`, by agent.

    Raises:
        UsageError: no such name or provider, no key.
        MachineError: the provider's package is missing.
    """
    parts = _parts(spec)
    if len(parts) > 1:
        return ChainPlanner([create_planner(part, ledger, settings, options) for part in parts])
    role = _role("planner", parts[0], ledger, settings)
    if role is None:
        return planners.create(parts[0], options=(options or {}).get(parts[0]))
    from .llm import LLMPlanner

    return LLMPlanner(role)


def create_model_planner(
    spec: str, ledger: Ledger | None = None, settings: LLMSettings | None = None
) -> ModelPlanner:
    """Create the planner for whole models: the first of the planners. See `create_planner`."""
    first = _parts(spec)[0]
    role = _role("planner", first, ledger, settings)
    if role is None:
        return model_planners.create(first if first in model_planners.names() else "playbook")
    from .llm import LLMModelPlanner

    return LLMModelPlanner(role)


def create_coder(
    spec: str,
    ledger: Ledger | None = None,
    settings: LLMSettings | None = None,
    options: AgentOptions | None = None,
) -> Coder:
    """Create a coder; see `create_planner`. `bandit(A,B)` draws one of several models for each attempt."""
    if arms := arms_of(spec):
        return BanditCoder({arm: create_coder(arm, ledger, settings, options) for arm in arms})
    parts = _parts(spec)
    if len(parts) > 1:
        return ChainCoder([create_coder(part, ledger, settings, options) for part in parts])
    role = _role("coder", parts[0], ledger, settings)
    if role is None:
        return coders.create(parts[0], options=(options or {}).get(parts[0]))
    from .llm import LLMCoder

    return LLMCoder(role)


def create_judge(
    spec: str,
    ledger: Ledger | None = None,
    settings: LLMSettings | None = None,
    options: AgentOptions | None = None,
) -> Judge:
    """Create a judge; see `create_planner`."""
    parts = _parts(spec)
    if len(parts) > 1:
        return ChainJudge([create_judge(part, ledger, settings, options) for part in parts])
    role = _role("judge", parts[0], ledger, settings)
    if role is None:
        return judges.create(parts[0], options=(options or {}).get(parts[0]))
    from .llm import LLMJudge

    return LLMJudge(role)


def create_author(
    search: SearchSettings, ledger: Ledger | None = None, settings: LLMSettings | None = None
) -> Author | None:
    """The first model among coder, planner and judge as the author; None if no role has a model."""
    for spec in (search.coder, search.planner, search.judge):
        for part in agents_in(spec):
            if part in authors.names():
                return authors.create(part, options=search.agent_options.get(part))
            role = _role("author", part, ledger, settings)
            if role is not None:
                from .llm import LLMAuthor

                return LLMAuthor(role)
    return None


def create_editor(
    search: SearchSettings, ledger: Ledger | None = None, settings: LLMSettings | None = None
) -> Editor | None:
    """The coder's first model as the editor of its prompt; None unless `search.directives` is set."""
    if not search.directives:
        return None
    from .llm import LLMEditor

    role = _role("editor", agents_in(search.coder)[0], ledger, settings)
    return LLMEditor(role) if role is not None else None


def agents_in(spec: str) -> tuple[str, ...]:
    """The agents that `playbook,openai:MODEL`, or a coder's `bandit(A,B)`, names.

    Raises:
        UsageError: it has another form.
    """
    return arms_of(spec) or _parts(spec)


def _parts(spec: str) -> tuple[str, ...]:
    """Split `playbook,openai:MODEL` into its parts."""
    if arms_of(spec):
        raise UsageError(
            f"{spec!r} draws who writes kernels: give it to --coder, and others to --planner and --judge"
        )
    parts = tuple(part.strip() for part in spec.split(","))
    if not all(parts):
        raise UsageError(f"{spec!r} names an agent that is empty: write for example playbook,openai:MODEL")
    return parts


def _role(name: str, spec: str, ledger: Ledger | None, settings: LLMSettings | None) -> Role | None:
    """The model in the role; None if `spec` names an agent."""
    if ":" not in spec:
        return None
    from agentforge.llm import Recorder, open_model

    from .llm.role import Role

    if ledger is None:
        raise UsageError(f"{spec} asks a language model, which needs a run's ledger")
    settings = settings or LLMSettings()
    model = open_model(spec, settings)
    ledger.check(model)
    if settings.record is not None:
        model = Recorder(model, settings.record)
    return Role(name, model, ledger, settings)
