"""Stages that look at what a candidate does beside its answer."""

from __future__ import annotations

import hashlib
import time

import torch

from agentforge.schema import EvaluationStatus, KernelUse, Level

from ..bench import same_bytes
from ..leaves import Leaf
from ..party import PartyFailure
from ..tolerance import measure
from ._base import Context

_BOTH = (Level.QUICK, Level.FULL)
_KEPT = ((64 << 20, 3), (1 << 20, 6), (0, 24))
"""Outputs alive at once by the bytes of one: buffers that are used again in turn are found up to so many."""
_SETTLE_S, _WINDOW_S, _BUSY = 0.03, 0.04, 0.1


class Determinism:
    """The same inputs twice with another call between; both outputs alive at once."""

    name = "determinism"
    levels: tuple[Level, ...] = _BOTH

    def run(self, context: Context) -> str:
        course, candidate, bench = context.course, context.candidate, context.bench
        course.inputs.fill(0)
        course.inputs.fill(1)
        expected = bench.expect(course, 1)
        candidate.call(1)
        context.judge.check(candidate.fetch(1), expected, course.bounds, "on fresh random inputs")
        expected = bench.expect(course, 0)
        candidate.call(0)
        first = candidate.fetch(0)
        context.judge.check(first, expected, course.bounds, "on fresh random inputs")
        # From here on only its digest: outputs may be as large as memory allows.
        digest = _digest(first)
        del first
        self._keep_alive(context, digest)
        candidate.call(0)
        again = candidate.fetch(0)
        if _digest(again) == digest:
            return "bitwise the same on the same inputs"
        for a, b, bound in zip(again, expected, course.bounds, strict=True):
            if isinstance(b.value, torch.Tensor) and (
                not isinstance(a.value, torch.Tensor)
                or a.value.shape != b.value.shape
                or not measure(a.value, b.value, bound).within(bound)
            ):
                raise PartyFailure(
                    EvaluationStatus.NONDETERMINISTIC, "right once and wrong the next time on the same inputs"
                )
        context.notes.append("its outputs differ in the last bits from call to call")
        return "differs in the last bits on the same inputs"

    def _keep_alive(self, context: Context, digest: bytes) -> None:
        """More calls, while the output of the last one and of these stay alive; it must not change."""
        candidate, limit = context.candidate, context.course.outputs_bytes
        most = next(count for nbytes, count in _KEPT if limit >= nbytes)
        with candidate.running_on():
            for number in range(1, most):
                candidate.call(1, keep=number)
        if _digest(candidate.fetch(0, ago=most - 1)) != digest:
            raise PartyFailure(
                EvaluationStatus.CHEATING,
                "a later call overwrites the output of an earlier one: static buffers",
            )


class Mutation:
    """The inputs as the candidate's process sees them after a call are what they were."""

    name = "mutation"
    levels: tuple[Level, ...] = _BOTH

    def run(self, context: Context) -> str:
        course, candidate = context.course, context.candidate
        if course.copy_inputs:
            return "the reference writes to its inputs; not examined"
        course.inputs.fill(1)
        candidate.call(1)
        seen = candidate.fetch_inputs(1)
        for original, theirs in zip(course.inputs.copies(1), seen, strict=False):
            if not isinstance(theirs.value, torch.Tensor) or not same_bytes(original, theirs.value):
                raise PartyFailure(
                    EvaluationStatus.CHEATING, "it writes to its inputs, which the reference does not"
                )
        return "inputs untouched"


class Attestation:
    """Which operators and own kernels ran, as its process tells."""

    name = "attestation"
    levels: tuple[Level, ...] = _BOTH

    def run(self, context: Context) -> str:
        reply = context.candidate.request({"op": "attest", "slot": 0})
        operators, own, total = reply.get("operators"), reply.get("own"), reply.get("ns")
        if (
            not isinstance(operators, dict)
            or not isinstance(own, dict)
            or not isinstance(total, int)
            or total <= 0
        ):
            raise PartyFailure(EvaluationStatus.CHEATING, "it answered with a false attestation")
        in_torch = 0.0
        uses = []
        for name, entry in list(operators.items())[:200]:
            if not (isinstance(entry, list) and len(entry) == 2 and all(type(x) is int for x in entry)):
                raise PartyFailure(EvaluationStatus.CHEATING, "it answered with a false attestation")
            share = min(max(entry[1] / total, 0.0), 1.0)
            in_torch += share
            uses.append(KernelUse(name=str(name)[:120], own=False, calls=max(entry[0], 0), share=share))
        for name, count in list(own.items())[:200]:
            calls = count if type(count) is int and count > 0 else 0
            uses.append(KernelUse(name=str(name)[:120], own=True, calls=calls))
        context.own_share = max(0.0, 1.0 - in_torch) if own else 0.0
        if len(own) == 1:
            uses = [u.model_copy(update={"share": context.own_share}) if u.own else u for u in uses]
        context.kernels[:] = uses
        return self._judge(context, uses, reply.get("counted") is True)

    def _judge(self, context: Context, uses: list[KernelUse], counted: bool) -> str:
        own = [u.name for u in uses if u.own]
        compiled = [s for s in context.solution.sources if s.path.endswith((".cpp", ".cu"))]
        if (compiled or counted or context.solution.spec.language == "triton") and not own:
            context.suspicions.append(
                "its own kernels were built and never ran: torch operators did the work"
            )
        policy = context.definition.policy
        if policy != "anything-faster" and not own and not compiled:
            context.suspicions.append("the task asks for own kernels and none was seen to run")
        heavy = [u for u in uses if not u.own and u.share > 0.02]
        if policy == "custom-only" and heavy:
            context.suspicions.append(
                f"the task allows own kernels alone; {heavy[0].name} took {heavy[0].share:.0%} of the time"
            )
        if policy == "vendor-gemm-allowed":
            others = [u for u in heavy if not _vendor(u.name)]
            if others:
                context.suspicions.append(
                    f"beside GEMM and convolution the task allows own kernels alone; {others[0].name} "
                    f"took {others[0].share:.0%} of the time"
                )
        return f"own kernels: {', '.join(own) or 'none'}; torch operators: {len(uses) - len(own)}"


def _vendor(name: str) -> bool:
    words = ("mm", "linear", "conv", "matmul", "baddbmm", "dot")
    return any(word in name.split(".")[1] for word in words) if "." in name else False


class Aftermath:
    """Work that goes on after the answer: processor time, processes left running."""

    name = "aftermath"
    levels: tuple[Level, ...] = _BOTH

    def run(self, context: Context) -> str:
        candidate = context.candidate
        candidate.call(0)
        candidate.worker.resume()
        left = candidate.worker.others()
        busy = self._load(context, left)
        if busy > _BUSY:
            busy = min(busy, self._load(context, left))
        if busy > _BUSY:
            raise PartyFailure(
                EvaluationStatus.CHEATING,
                f"it goes on working after its answer: {busy:.1f} processors busy while nothing is asked",
            )
        if left:
            context.suspicions.append(f"it left {len(left)} more processes running after its answer")
        return f"{busy:.2f} processors busy after the answer, {len(left)} processes beside its own"

    def _load(self, context: Context, left: list[int]) -> float:
        worker = context.candidate.worker
        time.sleep(_SETTLE_S)
        before, start = worker.cpu_seconds(left), time.perf_counter()
        time.sleep(_WINDOW_S)
        return (worker.cpu_seconds(left) - before) / (time.perf_counter() - start)


def _digest(leaves: list[Leaf]) -> bytes:
    """Of an output's form and bytes."""
    digest = hashlib.blake2b(digest_size=16)
    for leaf in leaves:
        value = leaf.value
        if isinstance(value, torch.Tensor):
            digest.update(repr((tuple(value.shape), value.dtype)).encode())
            digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy())
        else:
            digest.update(repr(value).encode())
    return digest.digest()
