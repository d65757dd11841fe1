"""The planner of a whole model: which regions to fuse, in which order, and which to leave."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agentforge.agents._base import Whole
from agentforge.agents.playbook.model import PlaybookModelPlanner, amdahl, by_gain, fused_first, limit
from agentforge.llm import Response, read, strict_schema
from agentforge.schema import Bottleneck, ModelPlan, RegionPlan

from . import facts
from .answers import ModelAnswer
from .asking import Objection, Role
from .prompts import render

_SCHEMA = strict_schema(ModelAnswer)
_MOST_REGIONS = 24
"""Regions that a prompt shows, most seconds first; the rest come after them, by the playbook's rule."""


class LLMModelPlanner:
    """Asks a model for the order of work. Stateless."""

    def __init__(self, role: Role) -> None:
        self.name = role.model.spec
        self._role = role

    def plan_model(self, whole: Whole) -> ModelPlan:
        """See `ModelPlanner.plan_model`.

        Raises:
            CallFailed: no usable answer came.
            CannotAfford: the budget does not allow the call.
        """
        shown = _named(by_gain(whole)[:_MOST_REGIONS])
        values = _facts(whole, shown)
        prompt = render(
            "planner/model.md.j2",
            facts=facts.shown(values),
            regions=[_described(name, b, whole) for name, b in shown.items()],
            others=len(whole.profile.bottlenecks) - len(shown),
        )

        def take(response: Response, again: bool) -> ModelAnswer:
            return _accepted(response, shown, values, again)

        system = (render("planner/model_system.md.j2", hardware=whole.hardware),)
        answer, usage = self._role.ask(system, prompt, take, attempt="", schema=_SCHEMA)
        regions = _completed(answer, shown, whole)
        return ModelPlan(
            regions=regions,
            expected_speedup=amdahl(whole.profile, regions),
            diagnosis=answer.diagnosis,
            evidence=facts.true_ones(answer.evidence, values),
            author=self.name,
            usage=usage,
        )


def _named(bottlenecks: list[Bottleneck]) -> dict[str, Bottleneck]:
    """By a name that is unique: the definition's, with a number where several share it."""
    seen: Counter[str] = Counter()
    found = {}
    for bottleneck in bottlenecks:
        name = bottleneck.definition.name
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name}#{seen[name]}"] = bottleneck
    return found


def _facts(whole: Whole, shown: dict[str, Bottleneck]) -> dict[str, float]:
    values = {
        "total_s": whole.profile.total_s,
        "bandwidth": whole.hardware.bandwidth,
        "peak_flops": whole.hardware.peak_flops,
    }
    for name, b in shown.items():
        for metric in ("share", "time_s", "sol_s", "gain_s"):
            values[f"{name}.{metric}"] = getattr(b, metric)
    return values


def _described(name: str, bottleneck: Bottleneck, whole: Whole) -> dict[str, Any]:
    operators = dict.fromkeys(o for site in bottleneck.call_sites for o in site.operators)
    return {
        "name": name,
        "op_type": bottleneck.definition.op_type,
        "calls": len(bottleneck.call_sites),
        "bound": bottleneck.bound.adjective,
        "operators": list(operators)[:12],
        "vendor": not bottleneck.optimizable,
        "limit": limit(bottleneck),
        "success": whole.success.get(bottleneck.definition.hash),
    }


def _accepted(
    response: Response, shown: dict[str, Bottleneck], values: facts.Facts, again: bool
) -> ModelAnswer:
    answer = read(ModelAnswer, response.parsed)
    if isinstance(answer, str):
        raise Objection(answer)
    count = Counter(region.name for region in answer.regions)
    for name, times in count.items():
        if name not in shown:
            raise Objection(f"there is no region {name!r}; the regions are {', '.join(shown)}")
        if times > 1:
            raise Objection(f"region {name!r} is named {times} times")
    for region in answer.regions:
        most = limit(shown[region.name])
        if region.fuse and region.expected_speedup > most * (1 + facts.TOLERANCE):
            raise Objection(
                f"{region.name} cannot become {region.expected_speedup:.3g}x faster: "
                f"{most:.3g}x is its speed of light"
            )
    if not any(region.fuse for region in answer.regions):
        raise Objection("every region is left: name at least one to make faster")
    problems = facts.invented(answer.evidence, values)
    if problems and not again:
        raise Objection("; ".join(problems))
    return answer


def _completed(answer: ModelAnswer, shown: dict[str, Bottleneck], whole: Whole) -> tuple[RegionPlan, ...]:
    """What was answered, then what was not named, as the playbook would have it."""
    named = [
        RegionPlan(
            bottleneck=shown[region.name].definition.hash,
            name=shown[region.name].definition.name,
            fuse=region.fuse,
            expected_speedup=region.expected_speedup if region.fuse else 1.0,
            why=region.why,
        )
        for region in answer.regions
    ]
    known = {region.bottleneck for region in named}
    rest = [r for r in PlaybookModelPlanner().plan_model(whole).regions if r.bottleneck not in known]
    return fused_first([*named, *rest])
