"""Which operators and own kernels ran, and in which precision torch computes."""

from __future__ import annotations

from collections.abc import Sequence

from agentforge.languages import kernel_suffixes, language_info
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus, KernelUse, ReasonCode

from .._base import BOTH_LEVELS, Check, CheckContext, When

_HEAVY = 0.02
"""Share of the time above which an operator counts against the task's policy."""


class Attestation(Check):
    """Asks the candidate's process which torch operators and own kernels ran, and in which precision torch
    computes there. The process may lie.

    A solution shares its process with the rest of a model, and another processor may obey a setting for
    float32 that this one ignores.
    """

    name = "attestation"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = (
        "own kernels that never run, operators that the task's policy does not allow, and settings of torch "
        "that let float32 operators compute in lower precision"
    )

    def run(self, context: CheckContext) -> str:
        reply = context.candidate.request({"op": "attest", "slot": 0})
        operators, own, total = reply.get("operators"), reply.get("own"), reply.get("ns")
        precisions = reply.get("precisions")
        if (
            not isinstance(operators, dict)
            or not isinstance(own, dict)
            or not isinstance(precisions, dict)
            or not isinstance(total, int)
            or total <= 0
        ):
            raise WorkerFailure(EvaluationStatus.CHEATING, "it answered with a false attestation")
        in_torch = 0.0
        uses = []
        for name, entry in list(operators.items())[:200]:
            if not (isinstance(entry, list) and len(entry) == 2 and all(type(x) is int for x in entry)):
                raise WorkerFailure(EvaluationStatus.CHEATING, "it answered with a false attestation")
            share = min(max(entry[1] / total, 0.0), 1.0)
            in_torch += share
            uses.append(KernelUse(name=str(name)[:120], own=False, calls=max(entry[0], 0), share=share))
        for name, count in list(own.items())[:200]:
            calls = count if type(count) is int and count > 0 else 0
            uses.append(KernelUse(name=str(name)[:120], own=True, calls=calls))
        own_share = max(0.0, 1.0 - in_torch) if own else 0.0
        if len(own) == 1:
            uses = [u.model_copy(update={"share": own_share}) if u.own else u for u in uses]
        if uses:
            context.findings.kernels = _joined(context.findings.kernels, uses)
            context.findings.own_share = own_share
        self._judge_precisions(context, precisions)
        return self._judge(context, uses, reply.get("counted") is True)

    def _judge_precisions(self, context: CheckContext, found: dict[str, object]) -> None:
        if not found or context.definition.precision is not None:
            return
        allowed = context.baselines.eager.request({"op": "attest", "slot": 0})["precisions"]
        changed = [f"{name} at {value}"[:120] for name, value in found.items() if allowed.get(name) != value]
        if changed:
            context.findings.suspect(
                ReasonCode.LOWER_PRECISION,
                f"it sets {changed[0]}, so float32 operators of its process may compute in lower precision; "
                "leave torch's settings as they are",
            )

    def _judge(self, context: CheckContext, uses: list[KernelUse], counted: bool) -> str:
        findings, policy = context.findings, context.definition.policy
        own = [u.name for u in uses if u.own]
        compiled = [s for s in context.solution.sources if s.path.endswith(kernel_suffixes())]
        if (compiled or counted or language_info(context.solution.spec.language).own_kernels) and not own:
            findings.suspect(
                ReasonCode.IDLE_KERNELS,
                "its own kernels were built and never ran: torch operators did the work",
            )
        if policy != "anything-faster" and not own and not compiled:
            findings.suspect(
                ReasonCode.NO_OWN_KERNELS, "the task asks for own kernels, and none was seen to run"
            )
        heavy = [u for u in uses if not u.own and u.share > _HEAVY]
        if policy == "custom-only" and heavy:
            findings.suspect(
                ReasonCode.FOREIGN_OPERATORS,
                f"the task allows own kernels only; {heavy[0].name} took {heavy[0].share:.0%} of the time",
            )
        if policy == "vendor-gemm-allowed":
            others = [u for u in heavy if not _vendor(u.name)]
            if others:
                findings.suspect(
                    ReasonCode.FOREIGN_OPERATORS,
                    f"besides GEMM and convolution the task allows own kernels only; {others[0].name} "
                    f"took {others[0].share:.0%} of the time",
                )
        return f"own kernels: {', '.join(own) or 'none'}; torch operators: {len(uses) - len(own)}"


def _joined(before: Sequence[KernelUse], new: Sequence[KernelUse]) -> tuple[KernelUse, ...]:
    """What one call of each workload ran: calls are added up, and the larger share counts."""
    found = {(use.name, use.own): use for use in before}
    for use in new:
        old = found.get((use.name, use.own))
        more = {"calls": use.calls + old.calls, "share": max(use.share, old.share)} if old else {}
        found[use.name, use.own] = use.model_copy(update=more)
    return tuple(found.values())


def _vendor(name: str) -> bool:
    words = ("mm", "linear", "conv", "matmul", "baddbmm", "dot")
    return any(word in name.split(".")[1] for word in words) if "." in name else False
