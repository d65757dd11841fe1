"""Memory safety of C++ kernels: accesses out of bounds, undefined behaviour, races between threads.

The solution runs in a process of its own with sanitized objects; inputs are copies between poisoned zones.
Only a fault in the solution's own source is a verdict; otherwise nothing was checked, and the detail says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from agentforge.languages.cpp.sanitizers.sanitizers import MEMORY, NotBuilt, Sanitizer, read_report
from agentforge.limits import free_memory
from agentforge.referee.baselines.baselines import Baselines
from agentforge.referee.baselines.prepared import PreparedWorkload, laid_out
from agentforge.referee.candidates.candidate import Candidate
from agentforge.referee.candidates.sanitizer_pool import NotChecked
from agentforge.referee.inputs.layouts import Change, changed, changes
from agentforge.referee.workers.failures import WorkerFailure
from agentforge.schema import EvaluationStatus, HarnessError

from .._base import FULL_LEVEL, Check, CheckContext, When

_MOST_BYTES = {MEMORY.name: 256 << 20}
_MOST_BYTES_OF_OTHERS = 64 << 20
"""Bytes of inputs above which only smaller shapes are tried: sanitized code is 5 to 50 times slower."""
_CALL_S, _SWEEP_S = 20.0, 6.0
_GROWTH, _LEAST_MEMORY = 8, 3 << 30


class MemorySafety(Check):
    """Runs the solution under one sanitizer, on other shapes that the reference accepts and its workload."""

    levels = FULL_LEVEL
    when = When.EXAMINATION
    condition = "for C++ kernels"

    def __init__(self, sanitizer: Sanitizer) -> None:
        self._sanitizer = sanitizer
        self.name = sanitizer.name
        memory = sanitizer is MEMORY
        self.catches = (
            "accesses out of bounds and undefined behaviour, with AddressSanitizer and UBSan"
            if memory
            else "races between threads, with ThreadSanitizer"
        )
        self._status = EvaluationStatus.CRASHED if memory else EvaluationStatus.NONDETERMINISTIC
        self._most_bytes = _MOST_BYTES.get(sanitizer.name, _MOST_BYTES_OF_OTHERS)

    def applies(self, context: CheckContext) -> bool:
        return context.sanitized is not None

    def run(self, context: CheckContext) -> str:
        assert context.sanitized is not None
        try:
            return self._watch(context, context.sanitized.folder(self._sanitizer))
        except (NotBuilt, NotChecked, HarnessError) as why:
            return f"not checked: {why}"
        except WorkerFailure as failure:
            fault = read_report(failure.log, context.solution)
            if fault is None:
                return f"not checked: {failure.reason.splitlines()[0][:200]}"
            context.findings.diagnostics += (fault,)
            reason = f"{fault.file}:{fault.line}: {fault.message}"
            raise WorkerFailure(self._status, reason, failure.log) from None

    def _watch(self, context: CheckContext, copy: Path) -> str:
        baselines, prepared = context.baselines, context.prepared
        whole = prepared.inputs.nbytes <= self._most_bytes
        done: list[str] = []
        candidate = self._start(context, copy)
        try:
            for name, variant in _shapes(baselines, prepared, whole):
                if _accepts(candidate, variant):
                    done.append(name)
            log = candidate.client.worker.log_tail()
            fault = read_report(log, context.solution)
            if fault is not None:  # the process goes on after a report of undefined behaviour
                raise WorkerFailure(EvaluationStatus.CRASHED, fault.message, log)
        except WorkerFailure as failure:
            if failure.status is not EvaluationStatus.TIMEOUT or not done:
                raise
            return f"no fault with: {', '.join(done)}; then {failure.reason}"
        finally:
            candidate.close()
        return f"no fault with: {', '.join(done) or 'no input that it accepts'}"

    def _start(self, context: CheckContext, copy: Path) -> Candidate:
        assert context.sanitized is not None
        prepared, builder = context.prepared, context.builder
        server = context.sanitized.pool.forkserver(self._sanitizer)
        needed = _GROWTH * prepared.inputs.nbytes + _LEAST_MEMORY
        if needed > free_memory():
            raise NotChecked(f"it needs {needed >> 20} MiB of free memory")
        timeout = max(_CALL_S, builder.settings.call_timeout_s)
        settings = builder.settings.model_copy(update={"memory_bytes": needed, "call_timeout_s": timeout})
        return builder.like(settings, server).start(
            context.solution, copy, context.baselines, _with_copied_inputs(prepared)
        )


def _accepts(candidate: Candidate, prepared: PreparedWorkload) -> bool:
    """Whether the candidate accepts a shape."""
    candidate.client.configure(_with_copied_inputs(prepared).body(), prepared.inputs, prepared.outputs_bytes)
    try:
        candidate.client.call(0)
    except WorkerFailure as failure:
        refused = failure.status is EvaluationStatus.RUNTIME_ERROR
        if refused and candidate.client.worker.running:
            return False
        raise
    return True


def _shapes(
    baselines: Baselines, prepared: PreparedWorkload, whole: bool
) -> Iterator[tuple[str, PreparedWorkload]]:
    """Other shapes that the reference accepts, the smallest first, while time is left; then the workload."""
    prepared.inputs.fill(0)
    deadline = time.monotonic() + _SWEEP_S
    tensors = prepared.inputs.copies(0)
    baselines.disturbed()
    try:
        for name, nbytes, change in _sweep(tensors):
            small = whole or nbytes < prepared.inputs.nbytes / 4
            if not small or time.monotonic() > deadline:
                continue
            variant = laid_out(prepared, changed(tensors, change) or tensors)
            try:
                if _accepted(baselines, variant):
                    yield name, variant
            finally:
                variant.inputs.close()
    finally:
        baselines.enter(prepared)
    if whole:
        yield "the workload", prepared


def _accepted(baselines: Baselines, variant: PreparedWorkload) -> bool:
    """Whether the reference runs on it."""
    eager = baselines.eager
    try:
        eager.configure(variant.body(), variant.inputs, variant.outputs_bytes)
        eager.call(0)
    except WorkerFailure:
        if not eager.worker.running:
            raise
        return False
    return True


def _sweep(tensors: Sequence[torch.Tensor]) -> list[tuple[str, int, Change]]:
    """Other shapes and strides with their bytes, the smallest first."""
    found = []
    for name, change in changes(tensors).items():
        content = changed(tensors, change)  # made again later: all at once may be large
        # PyTorch broadcasts a size of one; a kernel need not.
        one = content is not None and any(
            1 in c.shape and 1 not in t.shape for c, t in zip(content, tensors, strict=True)
        )
        if content is not None and not one:
            found.append((name, sum(t.nbytes for t in content), change))
    return sorted(found, key=lambda entry: entry[1])


def _with_copied_inputs(prepared: PreparedWorkload) -> PreparedWorkload:
    """Copies inputs for each call: a sanitizer knows the bounds of its own allocations only."""
    return replace(prepared, copy_inputs=True)
