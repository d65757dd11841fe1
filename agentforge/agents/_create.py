"""Agents by name or by a language model's specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentforge.config import LLMSettings, SearchSettings
from agentforge.schema import UsageError

from ._base import Coder, Judge, Planner, coders, judges, planners

if TYPE_CHECKING:
    from agentforge.llm import Ledger

    from .llm.asking import Role


def check_agents(search: SearchSettings, settings: LLMSettings) -> None:
    """Say at once, and not after a profile, that an agent cannot be had.

    Raises:
        UsageError: no such name or provider, no key.
        MachineError: the provider's package is missing.
    """
    named = ((planners, search.planner), (coders, search.coder), (judges, search.judge))
    for registry, spec in named:
        if ":" not in spec:
            registry.get(spec)
    for spec in dict.fromkeys(spec for _, spec in named if ":" in spec):
        from agentforge.llm import open_model

        open_model(spec, settings)


def create_planner(spec: str, ledger: Ledger | None = None, settings: LLMSettings | None = None) -> Planner:
    """A planner.

    Args:
        spec: a registered name (`playbook`), or a model: `anthropic:MODEL`, `openai:MODEL`,
            `openai:MODEL@URL`, `replay:FILE`.
        ledger: journal and budget of the run's model calls; needed for a model.
        settings: how models are asked.

    Raises:
        UsageError: no such name or provider, no key.
        MachineError: the provider's package is missing.
    """
    role = _role("planner", spec, ledger, settings)
    if role is None:
        return planners.create(spec)
    from .llm import LLMPlanner

    return LLMPlanner(role)


def create_coder(spec: str, ledger: Ledger | None = None, settings: LLMSettings | None = None) -> Coder:
    """A coder; see `create_planner`."""
    role = _role("coder", spec, ledger, settings)
    if role is None:
        return coders.create(spec)
    from .llm import LLMCoder

    return LLMCoder(role)


def create_judge(spec: str, ledger: Ledger | None = None, settings: LLMSettings | None = None) -> Judge:
    """A judge; see `create_planner`."""
    role = _role("judge", spec, ledger, settings)
    if role is None:
        return judges.create(spec)
    from .llm import LLMJudge

    return LLMJudge(role)


def _role(name: str, spec: str, ledger: Ledger | None, settings: LLMSettings | None) -> Role | None:
    """The model in the role; None where `spec` is the name of an agent."""
    if ":" not in spec:
        return None
    from agentforge.llm import Recorder, open_model

    from .llm.asking import Role

    if ledger is None:
        raise UsageError(f"{spec} asks a language model, which needs a run's ledger")
    settings = settings or LLMSettings()
    model = open_model(spec, settings)
    ledger.check(model)
    if settings.record is not None:
        model = Recorder(model, settings.record)
    return Role(name, model, ledger, settings)
