"""Statuses of an evaluation, and codes for its reasons. Programs read codes; people read the sentences."""

from __future__ import annotations

from enum import StrEnum


class EvaluationStatus(StrEnum):
    """What happened. A crash, an out-of-memory or a timeout is a status of its own, never a pass."""

    PASSED = "PASSED"
    COMPILE_ERROR = "COMPILE_ERROR"
    """It does not build or parse, or is larger than 16 MiB."""
    RUNTIME_ERROR = "RUNTIME_ERROR"
    """It raised, has no `ModelNew`, or other init arguments."""
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    """A wrong value; the log names the first one's place."""
    NONDETERMINISTIC = "NONDETERMINISTIC"
    """Right once and wrong the next time on the same inputs."""
    TIMEOUT = "TIMEOUT"
    """No answer in time, also if stopped or ignoring signals."""
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    """An allocation failed, or it was killed for memory."""
    CRASHED = "CRASHED"
    """Its process died, or left instead of answering."""
    CHEATING = "CHEATING"
    """A static buffer; outputs that share memory, or rely on what earlier ones contained; inputs written to;
    a view of an input; a tensor subclass; forged messages; deferred work; work after the answer; a time below
    half the speed of light."""
    HARNESS_ERROR = "HARNESS_ERROR"
    """The referee failed, and restarts itself."""
    UNSUPPORTED = "UNSUPPORTED"
    """It builds, and this machine cannot decide whether it is right. Stored as `UNVERIFIED` before 0.1."""

    @property
    def undecided(self) -> bool:
        """Whether it says nothing about the solution."""
        return self in (EvaluationStatus.HARNESS_ERROR, EvaluationStatus.UNSUPPORTED)

    @classmethod
    def _missing_(cls, value: object) -> EvaluationStatus | None:
        return cls.UNSUPPORTED if value == "UNVERIFIED" else None


class ReasonCode(StrEnum):
    """Why an evaluation has its status, or is not `verified`."""

    # One for each status, for failures that need no closer name.
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    INCORRECT_SHAPE = "incorrect_shape"
    INCORRECT_DTYPE = "incorrect_dtype"
    INCORRECT_NUMERICAL = "incorrect_numerical"
    NONDETERMINISTIC = "nondeterministic"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"
    CHEATING = "cheating"
    HARNESS_ERROR = "harness_error"
    UNSUPPORTED = "unsupported"

    # Reasons for the evidence `suspicious`.
    WEAK_TASK = "weak_task"
    """The task's bounds accept an answer that is wrong."""
    NO_OWN_KERNELS = "no_own_kernels"
    """The task asks for own kernels, and none ran."""
    IDLE_KERNELS = "idle_kernels"
    """The answer is right although the own kernels did nothing."""
    KERNELS_NOT_REMOVABLE = "kernels_not_removable"
    """The own kernels could not be disabled, so nothing shows that they do the work."""
    FOREIGN_OPERATORS = "foreign_operators"
    """Operators did the work that the task's policy does not allow."""
    LOWER_PRECISION = "lower_precision"
    """It sets torch so that float32 operators of its process may compute in lower precision."""
    SHARED_GENERATOR = "shared_generator"
    """Its calls seed, or draw from, a generator of random numbers that the rest of its process uses too."""
    MORE_PROCESSES = "more_processes"
    """Other processes of the candidate ran beside its own."""
    STATE_MISSING = "state_missing"
    """The reference's calls change a buffer that the solution does not have."""
    SPEED_OF_LIGHT = "speed_of_light"
    """The latency is below the speed-of-light time."""

    # Reasons for the evidence `unverified`.
    QUICK_LEVEL = "quick_level"
    PARTIAL_WEIGHTS = "partial_weights"
    UNTIMED = "untimed"
    """Timings mean nothing here, for example under emulation."""
    NOISY_CONTROL = "noisy_control"
    """The machine was not steady: the same baseline in two processes gave different times."""
    GROUPS_DISAGREE = "groups_disagree"
    """The machine was not steady: process groups gave different speedups."""
    DEFERRED_WORK = "deferred_work"
    """Work may go on after the clock stopped, or the measurement was disturbed."""
    INTERFERENCE = "interference"
    """The reference is slower beside the candidate."""
    STARVED = "starved"
    """It took too long, and may have waited for processors that other programs had."""

    @classmethod
    def of(cls, status: EvaluationStatus) -> ReasonCode:
        """The general code of a failure.

        Raises:
            ValueError: PASSED, which is no failure.
        """
        return cls(status.value.lower())
