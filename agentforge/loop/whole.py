"""The plan for a whole model: made once a run, before any of its regions is planned."""

from __future__ import annotations

from collections.abc import Mapping

from agentforge.agents import Hardware, ModelPlanner, Whole, model_planners
from agentforge.schema import AgentForgeError, ModelPlan, Profile, UsageError

from ._describe import sentence
from .journal import Journal

PLANNED = "model.planned"


def plan_model(
    planner: ModelPlanner, profile: Profile, hardware: Hardware, priors: Mapping[str, float], journal: Journal
) -> ModelPlan:
    """The run's plan; from the journal where it was made before.

    Where nothing is to be chosen, or the planner has no usable answer, it is the playbook's.
    """
    told = journal.first(PLANNED)
    if told is not None:
        return ModelPlan.model_validate(told.data["plan"])
    whole = Whole(profile, hardware, priors)
    plan = _planned(planner, whole)
    journal.event(PLANNED, plan=plan.model_dump(mode="json"))
    for region in plan.regions:
        if not region.fuse:
            journal.event("bottleneck.closed", bottleneck=region.bottleneck, reason=left(region.why))
    return plan


def left(why: str) -> str:
    """Why a region gets no attempt."""
    return f"left by the plan: {why}"


def _planned(planner: ModelPlanner, whole: Whole) -> ModelPlan:
    by_rule = model_planners.create("playbook")
    if sum(b.optimizable for b in whole.profile.bottlenecks) < 2:
        return by_rule.plan_model(whole)
    try:
        return _checked(planner.plan_model(whole), whole.profile)
    except AgentForgeError:
        raise
    except Exception as error:
        plan = by_rule.plan_model(whole)
        why = f"by rule, as the planner of the whole failed: {sentence(error)}; {plan.diagnosis}"
        return plan.model_copy(update={"diagnosis": why})


def _checked(plan: ModelPlan, profile: Profile) -> ModelPlan:
    """The plan, if it names each region of the profile once.

    Raises:
        UsageError: it does not; the planner is wrong.
    """
    named = sorted(region.bottleneck for region in plan.regions)
    if named != sorted(b.definition.hash for b in profile.bottlenecks):
        raise UsageError(f"the plan of {plan.author} does not name each region of the profile once")
    return plan
