"""The LLM planner of a whole model: which regions to fuse, in which order, and which to leave."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from agentforge.agents._base import ModelContext
from agentforge.agents.playbook.model_planner import (
    PlaybookModelPlanner,
    amdahl,
    by_gain,
    fused_first,
    limit,
    moves_for,
)
from agentforge.llm import Response, strict_schema
from agentforge.schema import Bottleneck, ModelPlan, RegionPlan

from . import facts
from .prompts import render
from .role import Objection, Role, parsed
from .schemas import ModelAnswer

_SCHEMA = strict_schema(ModelAnswer)
_MOST_REGIONS = 24
"""Most regions in a prompt, most seconds first. The playbook's rule orders the rest after them."""


class LLMModelPlanner:
    """Asks a model for the order of work."""

    def __init__(self, role: Role) -> None:
        self.name = role.model.spec
        self._role = role

    def plan_model(self, whole: ModelContext) -> ModelPlan:
        """See `ModelPlanner.plan_model`.

        Raises:
            CallFailed: no usable answer came.
            CannotAfford: the budget does not allow the call.
        """
        if not whole.profile.bottlenecks:
            return PlaybookModelPlanner().plan_model(whole)
        shown = _named([*by_gain(whole)[:_MOST_REGIONS], *whole.profile.merges])
        possible = {b.definition.hash for b in whole.profile.merges}
        merges = {name: b for name, b in shown.items() if b.definition.hash in possible}
        values = _facts(whole, shown)
        moves = moves_for(whole.profile)
        prompt = render(
            "planner/model.md.j2",
            facts=facts.prompt_lines(values),
            # by name: the order by gain differs from one measurement to the next, and a replay would miss
            regions=[_described(name, b) for name, b in sorted(shown.items()) if name not in merges],
            merges=[
                {**_described(name, b), "parts": _parts(b, shown, merges)}
                for name, b in sorted(merges.items())
            ],
            moves=moves,
            others=len(whole.profile.bottlenecks) - (len(shown) - len(merges)),
        )

        def take(response: Response, again: bool) -> ModelAnswer:
            answer = _accepted(response, shown, merges, values, again)
            if unknown := set(answer.moves) - {m.kind for m in moves}:
                raise Objection(f"there is no possible move {sorted(unknown)[0]!r}")
            return answer

        system = (render("planner/model_system.md.j2", hardware=whole.hardware),)
        answer, usage = self._role.ask(system, prompt, take, attempt="", schema=_SCHEMA)
        chosen = tuple(merges[name].definition.hash for name in dict.fromkeys(answer.merges))
        merged = replace(whole, profile=whole.profile.merged(chosen))
        regions = _completed(answer, shown, merged)
        return ModelPlan(
            regions=regions,
            merges=chosen,
            moves=tuple(m for m in moves if not answer.moves or m.kind in answer.moves),
            expected_speedup=amdahl(merged.profile, regions),
            diagnosis=answer.diagnosis,
            evidence=facts.valid_citations(answer.evidence, values),
            author=self.name,
            usage=usage,
        )


def _named(bottlenecks: list[Bottleneck]) -> dict[str, Bottleneck]:
    """Regions by a unique name: the definition's, numbered if several regions share it."""
    seen: Counter[str] = Counter()
    found = {}
    for bottleneck in bottlenecks:
        name = bottleneck.definition.name
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name}#{seen[name]}"] = bottleneck
    return found


def _facts(whole: ModelContext, shown: dict[str, Bottleneck]) -> dict[str, float]:
    values = {
        "total_s": whole.profile.total_s,
        "machine_bandwidth": whole.hardware.bandwidth,
        "machine_peak_flops": whole.hardware.peak_flops,
    }
    for name, b in shown.items():
        for metric in ("share", "time_s", "sol_s", "gain_s"):
            values[f"{name}.{metric}"] = getattr(b, metric)
    return values


def _described(name: str, bottleneck: Bottleneck) -> dict[str, Any]:
    operators = dict.fromkeys(o for site in bottleneck.call_sites for o in site.operators)
    return {
        "name": name,
        "op_type": bottleneck.definition.op_type,
        "calls": len(bottleneck.call_sites),
        "bound": bottleneck.bound.adjective,
        "operators": list(operators)[:12],
        "vendor": not bottleneck.optimizable,
        "limit": limit(bottleneck),
    }


def _parts(merge: Bottleneck, shown: dict[str, Bottleneck], merges: dict[str, Bottleneck]) -> list[str]:
    """Names of the shown regions that a merge takes nodes from."""
    nodes = frozenset(node for site in merge.call_sites for node in site.unit_nodes)
    return [
        name
        for name, b in sorted(shown.items())
        if name not in merges and any(site.within(nodes) for site in b.call_sites)
    ]


def _accepted(
    response: Response,
    shown: dict[str, Bottleneck],
    merges: dict[str, Bottleneck],
    values: facts.Facts,
    again: bool,
) -> ModelAnswer:
    answer = parsed(ModelAnswer, response)
    taken: dict[tuple[str, str], str] = {}
    for name in dict.fromkeys(answer.merges):
        if name not in merges:
            raise Objection(f"there is no possible merge {name!r}; there are {', '.join(merges) or 'none'}")
        for node in (node for site in merges[name].call_sites for node in site.unit_nodes):
            if taken.setdefault(node, name) != name:
                raise Objection(f"the merges {taken[node]} and {name} share a part: choose one of them")
    for region in answer.regions:
        if region.name in merges and region.fuse and region.name not in answer.merges:
            raise Objection(
                f"{region.name} is a possible merge: name it in merges, or leave it out of regions"
            )
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
    if not again and (problem := facts.objection_to(answer.evidence, values)):
        raise Objection(problem)
    return answer


def _completed(
    answer: ModelAnswer, shown: dict[str, Bottleneck], whole: ModelContext
) -> tuple[RegionPlan, ...]:
    """The answer's regions without those that were merged, then the others in the playbook's order."""
    left = {b.definition.hash for b in whole.profile.bottlenecks}
    named = [
        RegionPlan(
            bottleneck=shown[region.name].definition.hash,
            name=shown[region.name].definition.name,
            fuse=region.fuse,
            expected_speedup=region.expected_speedup if region.fuse else 1.0,
            why=region.why,
        )
        for region in answer.regions
        if shown[region.name].definition.hash in left
    ]
    known = {region.bottleneck for region in named}
    rest = [r for r in PlaybookModelPlanner().plan_model(whole).regions if r.bottleneck not in known]
    return fused_first([*named, *rest])
