"""Which operators and own kernels ran, in which precision torch computes, and who draws random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from agentforge.languages import kernel_suffixes, language_info
from agentforge.referee.candidates.foreign_work import foreign_functions, is_product
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus, KernelUse, ReasonCode

from .._base import BOTH_LEVELS, Check, CheckContext, When

_HEAVY = 0.02
"""Share of the time above which an operator counts against the task's policy."""
_MISSED = 0.25, 30_000
"""Share and nanoseconds of a call above which torch's operators count that no dispatch mode sees."""
_CALLS = 6
"""Calls in one close look, at most."""
_UNKNOWN = 0.5, 200_000
"""Share and nanoseconds above which time counts in which neither own kernels nor operators ran."""
_MOST_NAMES, _NAMED = 200, 3
_AGAIN = 2
"""Further looks at a call of which a dispatch mode seems to miss a part."""
_STRETCH, _STRETCH_NS = 4, 2_000_000
"""How much longer than a usual call one that is watched may take before its operators' shares grow. On a
GPU both times are those of all of its work: the usual one by events, the watched one by the host, waiting."""


class Attestation(Check):
    """Asks the candidate's process which torch operators and own kernels ran, in which precision torch
    computes there, and which generators of random numbers changed. The process may lie.

    A solution shares its process with the rest of a model: its generators too. And another processor may
    obey a setting for float32 that this one ignores.
    """

    name = "attestation"
    levels = BOTH_LEVELS
    when = When.EXAMINATION
    catches = (
        "own kernels that never run, operators that the task's policy does not allow, settings of torch "
        "that let float32 operators compute in lower precision, other modes of torch or the processor, and "
        "seeds for the generators of random numbers that the whole process shares"
    )

    def run(self, context: CheckContext) -> str:
        asks_for_own = context.definition.policy != "anything-faster"
        closely = asks_for_own and language_info(context.solution.spec.language).sanitizers
        if asks_for_own:  # operators are slower when they are first watched
            context.candidate.request({"op": "attest", "slot": 0})
        limit = _CALLS * context.candidate.call_timeout_s
        look = partial(
            context.candidate.request, {"op": "attest", "slot": 0, "closely": closely}, timeout_s=limit
        )
        reply = look()
        own, total, precisions = reply.get("own"), reply.get("ns"), reply.get("precisions")
        if (
            not isinstance(own, dict)
            or not isinstance(precisions, dict)
            or not isinstance(total, int)
            or total <= 0
        ):
            raise _false()
        operators = _entries(reply.get("operators"))
        missed = _found_again(_missed(reply.get("other", {})), look)
        if asks_for_own:
            total = min(total, _STRETCH * context.candidate.call(0) + _STRETCH_NS)
        uses = [*_operator_uses(operators, total), *missed]
        in_torch = sum(use.share for use in uses)
        for name, count in list(own.items())[:_MOST_NAMES]:
            calls = count if type(count) is int and count > 0 else 0
            uses.append(KernelUse(name=str(name)[:120], own=True, calls=calls))
        own_share = max(0.0, 1.0 - in_torch) if own else 0.0
        if len(own) == 1:
            uses = [u.model_copy(update={"share": own_share}) if u.own else u for u in uses]
        if uses:
            context.findings.kernels = _joined(context.findings.kernels, uses)
            context.findings.own_share = own_share
        self._judge_settings(context, precisions, _names(reply.get("generators")))
        if asks_for_own:
            self._judge_lookups(context, _names(reply.get("looked_up", [])))
        return self._judge(context, uses, reply.get("counted") is True)

    def _judge_lookups(self, context: CheckContext, found: list[str]) -> None:
        if found:
            context.findings.suspect(
                ReasonCode.FOREIGN_OPERATORS,
                f"the task asks for own kernels; its Python code looks up {', '.join(found[:_NAMED])[:200]}",
            )

    def _judge_settings(
        self, context: CheckContext, precisions: dict[str, object], generators: list[str]
    ) -> None:
        if context.definition.precision is not None:
            precisions = {}
        if not precisions and not generators:
            return
        allowed = context.baselines.eager.request({"op": "attest", "slot": 0})
        changed = [
            f"{name} at {value}"[:120]
            for name, value in precisions.items()
            if allowed["precisions"].get(name) != value
        ]
        if changed:
            context.findings.suspect(
                ReasonCode.LOWER_PRECISION,
                f"it sets {changed[0]}, so other operators of its process may be less exact, or fail; "
                "leave settings of the whole process as they are",
            )
        if generators and not allowed["generators"]:
            context.findings.suspect(
                ReasonCode.SHARED_GENERATOR,
                f"its call changes the state of {generators[0][:80]}, a generator of random numbers that its "
                "whole process shares, and the reference's does not; use a generator of its own",
            )

    def _judge(self, context: CheckContext, uses: list[KernelUse], counted: bool) -> str:
        findings, policy = context.findings, context.definition.policy
        own = [u.name for u in uses if u.own]
        language = language_info(context.solution.spec.language)
        compiled = language.suffixes and [
            s for s in context.solution.sources if s.path.endswith(kernel_suffixes())
        ]
        if (compiled or counted or language.own_kernels) and not own:
            findings.suspect(
                ReasonCode.IDLE_KERNELS,
                "its own kernels were built and never ran: torch operators did the work",
            )
        if policy != "anything-faster" and not own and not compiled:
            findings.suspect(
                ReasonCode.NO_OWN_KERNELS, "the task asks for own kernels, and none was seen to run"
            )
        if policy != "anything-faster":
            self._judge_foreign_work(context, [u for u in uses if not u.own])
        return f"own kernels: {', '.join(own) or 'none'}; torch operators: {len(uses) - len(own)}"

    def _judge_foreign_work(self, context: CheckContext, uses: list[KernelUse]) -> None:
        products = context.definition.policy == "vendor-gemm-allowed"
        allowed = "the task allows own kernels only"
        if products:
            allowed = f"besides GEMM and convolution {allowed}"
        heavy = [u for u in uses if u.share > _HEAVY and not (products and is_product(u.name))]
        if heavy:
            context.findings.suspect(
                ReasonCode.FOREIGN_OPERATORS,
                f"{allowed}; {heavy[0].name} took {heavy[0].share:.0%} of the time",
            )
        if language_info(context.solution.spec.language).sanitizers:
            called = foreign_functions(context.folder, products=products)
            if called:
                context.findings.suspect(
                    ReasonCode.FOREIGN_OPERATORS,
                    f"{allowed}; its C++ calls {', '.join(called[:_NAMED])[:200]}",
                )


def _is_entry(entry: object) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and all(type(x) is int for x in entry)


def _entries(found: object) -> dict[str, list[int]]:
    """What the candidate's process says of operators, if it has the form of an answer."""
    if not isinstance(found, dict) or not all(type(n) is str and _is_entry(e) for n, e in found.items()):
        raise _false()
    return found


def _names(found: object) -> list[str]:
    """A list of names that the candidate's process answers with."""
    if not isinstance(found, list) or not all(type(name) is str for name in found):
        raise _false()
    return found


def _false() -> WorkerFailure:
    return WorkerFailure(EvaluationStatus.CHEATING, "it answered with a false attestation")


def _missed(other: object) -> list[KernelUse]:
    """The work that a dispatch mode misses, if it takes long."""
    found = []
    for name, (spent, total) in list(_entries(other).items())[:_MOST_NAMES]:
        share, least = _MISSED if name else _UNKNOWN
        if spent > max(share * total, least):
            what = name[:120] or "work outside own kernels and torch"
            found.append(KernelUse(name=what, own=False, calls=1, share=min(1.0, spent / max(total, 1))))
    return found


def _found_again(missed: list[KernelUse], look: Callable[[], dict[str, object]]) -> list[KernelUse]:
    """Those that further looks miss too: other programs may have held up the first one."""
    for _ in range(_AGAIN if missed else 0):
        seen = {use.name for use in _missed(look().get("other", {}))}
        missed = [use for use in missed if use.name in seen]
    return missed


def _operator_uses(operators: dict[str, list[int]], total: int) -> list[KernelUse]:
    """The operators by time, and those beyond the first 200 as one."""
    ordered = sorted(operators.items(), key=lambda item: -item[1][1])
    rest = [entry for _, entry in ordered[_MOST_NAMES:]]
    if rest:
        ordered[_MOST_NAMES:] = [
            (f"{len(rest)} more operators", [sum(column) for column in zip(*rest, strict=True)])
        ]
    return [
        KernelUse(name=name[:120], own=False, calls=max(calls, 0), share=min(max(spent, 0), total) / total)
        for name, (calls, spent) in ordered
    ]


def _joined(before: Sequence[KernelUse], new: Sequence[KernelUse]) -> tuple[KernelUse, ...]:
    """What one call of each workload ran: calls are added up, and the larger share counts."""
    found = {(use.name, use.own): use for use in before}
    for use in new:
        old = found.get((use.name, use.own))
        more = {"calls": use.calls + old.calls, "share": max(use.share, old.share)} if old else {}
        found[use.name, use.own] = use.model_copy(update=more)
    return tuple(found.values())
