"""Memory safety of compiled kernels: accesses out of bounds, undefined behaviour, races between threads.

The solution runs as it is, in a process apart from the timed ones, with objects that were built with a
sanitizer. Its inputs are copies of exact size between poisoned zones, as are all tensors that it allocates.
A fault in the solution's own source is a verdict; whatever else goes wrong there is none, and is said.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import torch

from agentforge.languages.cpp.language import SUFFIXES
from agentforge.languages.cpp.sanitizers import MEMORY, RACES, NotBuilt, Sanitizer, build, read_report
from agentforge.schema import Diagnostic, EvaluationStatus, HarnessError, Solution

from ..bench import Bench, Course
from ..candidate import Candidate, Workshop
from ..judge import Judge
from ..laboratory import Laboratory, NotChecked
from ..party import PartyFailure
from ..variants import Change, changed, changes, laid_out

SANITIZERS = (MEMORY, RACES)
_STATUS = {MEMORY.name: EvaluationStatus.CRASHED, RACES.name: EvaluationStatus.NONDETERMINISTIC}
_MOST_BYTES = {MEMORY.name: 256 << 20, RACES.name: 64 << 20}
"""Inputs of a workload beyond which smaller ones alone are tried: sanitized code is 5 to 50 times slower."""
_CALL_S, _SWEEP_S = 20.0, 6.0
_GROWTH, _LEAST_MEMORY = 8, 3 << 30


class MemorySafety:
    """Runs one built solution under one sanitizer, on its workload and on the shapes of a sweep.

    Compiling takes seconds and begins at once, beside whatever else is examined; `close` ends it.

    Args:
        laboratory: starts the processes.
        workshop: that built the solution.
        solution: with compiled sources.
        folder: of the built solution; it is copied.
    """

    def __init__(self, laboratory: Laboratory, workshop: Workshop, solution: Solution, folder: Path) -> None:
        self.laboratory = laboratory
        self.workshop = workshop
        self.solution = solution
        self._pool = ThreadPoolExecutor(len(SANITIZERS))
        self._built: dict[str, Future[Path]] = {}
        for sanitizer in SANITIZERS:
            laboratory.prepare(sanitizer)
            self._built[sanitizer.name] = self._pool.submit(self._build, folder, sanitizer)

    def close(self) -> None:
        """Wait for what is being compiled and remove it."""
        self._pool.shutdown(cancel_futures=True)
        for future in self._built.values():
            with suppress(NotBuilt, CancelledError):
                shutil.rmtree(future.result(), ignore_errors=True)

    def run(self, bench: Bench, course: Course, sanitizer: Sanitizer, found: list[Diagnostic]) -> str:
        """Look for faults of one kind.

        Args:
            bench: says which other shapes the reference accepts.
            course: the workload; the bench has it again afterwards.
            sanitizer: which kind.
            found: gets the fault.

        Returns:
            What was tried, or why nothing was.

        Raises:
            PartyFailure: there is a fault, at a line of the solution.
        """
        try:
            return self._watch(self._built[sanitizer.name].result(), bench, course, sanitizer)
        except (NotBuilt, NotChecked, HarnessError) as why:
            return f"not checked: {why}"
        except PartyFailure as failure:
            fault = read_report(failure.log, self.solution)
            if fault is None:
                return f"not checked: {failure.reason.splitlines()[0][:200]}"
            found.append(fault)
            raise PartyFailure(
                _STATUS[sanitizer.name], f"{fault.file}:{fault.line}: {fault.message}", failure.log
            ) from None

    def _build(self, folder: Path, sanitizer: Sanitizer) -> Path:
        copy = folder.with_name(f"{folder.name}-{sanitizer.name}")
        shutil.copytree(folder, copy, symlinks=True)
        shop = self.workshop
        timeout = shop.settings.build_timeout_s
        try:
            build(self.solution, copy, sanitizer, cache=shop.cache, run=shop.run, timeout_s=timeout)
        except BaseException:
            shutil.rmtree(copy, ignore_errors=True)
            raise
        return copy

    def _watch(self, copy: Path, bench: Bench, course: Course, sanitizer: Sanitizer) -> str:
        whole = course.inputs.nbytes <= _MOST_BYTES[sanitizer.name]
        done: list[str] = []
        candidate = self._start(copy, bench, course, sanitizer)
        try:
            for name, variant in self._courses(bench, course, whole):
                if self._runs(candidate, variant):
                    done.append(name)
            log = candidate.party.worker.log_tail()
            fault = read_report(log, self.solution)
            if fault is not None:  # undefined behaviour is told of, and the process goes on
                raise PartyFailure(EvaluationStatus.CRASHED, fault.message, log)
        except PartyFailure as failure:
            if failure.status is not EvaluationStatus.TIMEOUT or not done:
                raise
            return f"no fault with: {', '.join(done)}; then {failure.reason}"
        finally:
            candidate.close()
        return f"no fault with: {', '.join(done) or 'nothing that it accepts'}"

    def _runs(self, candidate: Candidate, course: Course) -> bool:
        """Whether it accepts a shape."""
        candidate.party.configure(_apart(course).body(), course.inputs, course.outputs_bytes)
        try:
            candidate.party.call(0)
        except PartyFailure as failure:
            refused = failure.status is EvaluationStatus.RUNTIME_ERROR
            if refused and candidate.party.worker.running:
                return False
            raise
        return True

    def _start(self, copy: Path, bench: Bench, course: Course, sanitizer: Sanitizer) -> Candidate:
        server = self.laboratory.forkserver(sanitizer)
        needed = _GROWTH * course.inputs.nbytes + _LEAST_MEMORY
        if needed > psutil.virtual_memory().available:
            raise NotChecked(f"it needs {needed >> 20} MiB of free memory")
        shop = self.workshop
        settings = shop.settings.model_copy(
            update={"memory_bytes": needed, "call_timeout_s": max(_CALL_S, shop.settings.call_timeout_s)}
        )
        return replace(shop, forkserver=server, settings=settings).start(
            self.solution, copy, bench, _apart(course)
        )

    @staticmethod
    def _courses(bench: Bench, course: Course, whole: bool) -> Iterator[tuple[str, Course]]:
        """Other shapes that the reference accepts while time is left, the smallest first; the workload."""
        course.inputs.fill(0)
        deadline = time.monotonic() + _SWEEP_S
        tensors = course.inputs.copies(0)
        bench.disturbed()
        try:
            for name, nbytes, change in _sweep(tensors):
                small = whole or nbytes < course.inputs.nbytes / 4
                if not small or time.monotonic() > deadline:
                    continue
                variant = laid_out(course, changed(tensors, change) or tensors)
                try:
                    if _accepted(bench, variant):
                        yield name, variant
                finally:
                    variant.inputs.close()
        finally:
            bench.enter(course)
        if whole:
            yield "the workload", course


def _accepted(bench: Bench, variant: Course) -> bool:
    """Whether the reference runs on it."""
    eager = bench.eager
    try:
        eager.configure(variant.body(), variant.inputs, variant.outputs_bytes)
        eager.call(0)
    except PartyFailure:
        if not eager.worker.running:
            raise
        return False
    return True


def _sweep(tensors: Sequence[torch.Tensor]) -> list[tuple[str, int, Change]]:
    """Other shapes and strides with their bytes, the smallest first."""
    found = []
    for name, change in changes(tensors).items():
        content = changed(tensors, change)  # made again when it is its turn: all at once may be large
        # A size of one is accepted by broadcasting where no kernel has to know what is meant.
        one = content is not None and any(
            1 in c.shape and 1 not in t.shape for c, t in zip(content, tensors, strict=True)
        )
        if content is not None and not one:
            found.append((name, sum(t.nbytes for t in content), change))
    return sorted(found, key=lambda entry: entry[1])


def has_kernels(solution: Solution) -> bool:
    """Whether there are sources that sanitizers can be built into."""
    return solution.spec.language == "cpp" and any(f.path.endswith(SUFFIXES) for f in solution.sources)


def other_thread_counts(
    workshop: Workshop, solution: Solution, folder: Path, bench: Bench, course: Course
) -> str:
    """Whether a solution's answer is right with one thread, and with more than it is timed with.

    Raises:
        PartyFailure: it is not.
    """
    course.inputs.fill(0)
    expected = bench.expect(course, 0)
    done = []
    for threads in (1, workshop.settings.threads + 3):
        settings = workshop.settings.model_copy(update={"threads": threads})
        try:
            candidate = replace(workshop, settings=settings).start(solution, folder, bench, course)
        except PartyFailure as failure:
            if failure.status is EvaluationStatus.RUNTIME_ERROR:
                continue
            raise
        try:
            candidate.party.call(0)
            where = f"with {threads} thread{'s' if threads > 1 else ''}"
            Judge().check(candidate.party.fetch(0), expected, course.bounds, where)
            done.append(str(threads))
        finally:
            candidate.close()
    return f"right with {' and '.join(done) or 'no other number of'} threads"


def _apart(course: Course) -> Course:
    """With inputs that are copied for each call: a sanitizer knows where an allocation of its ends."""
    return replace(course, copy_inputs=True)
