"""What a view knows of a run: computed from its events, and from nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentforge.schema import (
        AttemptEvent,
        Event,
        Interval,
        LLMAnswered,
        LLMBegun,
        LLMFailed,
        ProfiledBottleneck,
    )

_EVALUATING = {"smoke": "checking", "quick": "measuring", "full": "verifying"}
"""State of an attempt while it is evaluated, by level."""


@dataclass
class Row:
    """A bottleneck, with what was promoted."""

    name: str
    share: float
    time_s: float
    sol_s: float
    limit: float = 1.0
    """Speedup of the whole at its speed of light."""
    attempts: int = 0
    speedup: float = 1.0
    state: str = ""


@dataclass
class Line:
    """An attempt."""

    number: int
    bottleneck: str
    strategy: str = ""
    state: str = "planning"
    speedup: Mapping[str, Interval] = field(default_factory=dict)
    expected: float | None = None
    note: str = ""
    reasons: tuple[str, ...] = ()
    """What the referee says of the newest evaluation."""
    level: str = ""
    """Of the newest evaluation."""
    why_not: str = ""
    """Why a solution that passed was not promoted."""


@dataclass
class RunState:
    """The run after the events so far."""

    run: str = ""
    phase: str = "starting"
    rows: dict[str, Row] = field(default_factory=dict)
    """By hash of the definition."""
    lines: dict[int, Line] = field(default_factory=dict)
    """By number of the attempt."""
    budget: Mapping[str, float | None] = field(default_factory=dict)
    total_s: float = 0.0
    doing: str = ""
    """The current activity within the phase."""
    asking: dict[str, str] = field(default_factory=dict)
    """Agents that wait for an answer, with the model that they asked."""
    tokens: int = 0
    """Of language models, in and out."""
    spent: float | None = 0.0
    """Dollars for them; None if a price is unknown."""
    clock: Callable[[], float] = time.monotonic
    _before: float = 0.0
    """Seconds of the run's earlier sessions."""
    _opened: float | None = None
    """Begin of this session, by the clock."""
    _stitching: float | None = None
    """Begin of stitching, by the clock."""
    _search: float | None = None
    """Begin of the search, by the clock."""
    _ends: float | None = None
    """End of the budget's minutes, by the clock; None without a limit."""
    _evaluation_ends: float | None = None
    """When the newest evaluation has to end, by the clock; None if that is unknown."""
    _made: int = 0
    """Attempts that were finished since the search began."""
    variants: int | None = None
    """Variants of the whole model that may still be judged, at most; None before stitching."""
    _expected: float | None = None
    """When stitching may end, by the clock; None if there is nothing to estimate it from."""

    @property
    def seconds_used(self) -> float:
        """Wall time of the run over all sessions."""
        return self._before + self._since(self._opened)

    @property
    def stitching_s(self) -> float:
        """Seconds of stitching in this session."""
        return self._since(self._stitching)

    def _since(self, begin: float | None) -> float:
        return 0.0 if begin is None else self.clock() - begin

    @property
    def phase_s(self) -> float:
        """Seconds since the search began, or stitching if it did."""
        return self._since(self._search if self._stitching is None else self._stitching)

    @property
    def left_s(self) -> float | None:
        """Estimated seconds of the search or stitching.

        Of the search: until the minutes are used up, or the attempts at their mean time. In overtime: until
        the evaluation has to end.
        """
        if self._expected is not None:
            return max(0.0, self._expected - self.clock())
        if self._search is None or self.phase != "searching":
            return None
        ends = self._evaluation_ends
        if self.overtime and ends is not None:
            return max(0.0, ends - self.clock())
        attempts, found = self.budget.get("attempts"), []
        if self._ends is not None:
            found.append(self._ends - self.clock())
        if attempts is not None and self._made:
            mean = self._since(self._search) / self._made
            found.append(attempts * mean)
        return max(0.0, min(found)) if found else None

    @property
    def overtime(self) -> bool:
        """Whether the minutes are used up, and the evaluation that was begun before goes on."""
        return self._evaluation_ends is not None and self._ends is not None and self._ends < self.clock()

    def _begin(self, minutes: float | None) -> None:
        """Note the begin of the search, and when its minutes end."""
        now = self.clock()
        self._search = now if self._search is None else self._search
        self._ends = None if minutes is None else now + minutes * 60
        self._evaluation_ends = None

    def apply(self, event: Event) -> None:
        """Take one event in; kinds that no view shows change nothing."""
        from agentforge.schema import AttemptEvent, LLMAnswered, LLMBegun, LLMFailed

        match event:
            case AttemptEvent():
                known = self._attempt(event)
            case LLMBegun() | LLMAnswered() | LLMFailed():
                known = self._call(event)
            case _:
                known = self._phase(event)
        if known:
            self.doing = known.text

    def _phase(self, event: Event) -> _Known | None:
        from agentforge import schema as e

        match event:
            case e.RunStarted() | e.RunResumed():
                self.run = event.run
                self.phase = "profiling" if isinstance(event, e.RunStarted) else "resuming"
                self._before, self._opened = event.seconds_used, self.clock()
            case e.ProfileDone():
                self.total_s, self.phase = event.total_s, "searching"
                self.rows = {b.hash: self._row(b) for b in event.bottlenecks}
            case e.ProfileRanked():
                self.total_s = event.total_s
                known = (b for b in event.bottlenecks if b.hash in self.rows)
                now = {b.hash: self._now(self.rows[b.hash], b) for b in known}
                self.rows = {**now, **{name: row for name, row in self.rows.items() if name not in now}}
            case e.Progress():
                return _Known(event.text)
            case e.BottleneckClosed():
                if event.bottleneck in self.rows:
                    self.rows[event.bottleneck].state = event.reason
            case e.SearchStarted():
                self._begin(event.budget.minutes)  # the profile does not count
            case e.BudgetLeft():
                self.budget, self._made = event.left, self._made + 1
                self._begin(event.left.get("minutes"))
            case e.StitchStarted():
                self.phase = "integrating kernels and measuring end to end"
                self._stitching = self.clock()
            case e.StitchLeft():
                self.variants = event.variants
                self._expected = None if event.seconds is None else self.clock() + event.seconds
            case e.StitchDone():
                self.variants = self._expected = None
            case e.RunFinished():
                self.phase = "finished"
            case _:
                return None
        return _Known()

    def _attempt(self, event: AttemptEvent) -> _Known | None:
        from agentforge import schema as e

        match event:
            case e.AttemptPlanned():
                line = self._line(event)
                line.strategy, line.expected, line.state = event.strategy, event.expected_speedup, "coding"
                if event.bottleneck in self.rows:  # it may have been closed, and is worth attempts again
                    self.rows[event.bottleneck].state = ""
            case e.AttemptCoded():
                self._line(event).state = "written"
            case e.AttemptBuilding():
                self._line(event).state = "compiling"
            case e.AttemptEvaluating():
                self._line(event).state = _EVALUATING[event.level.value]
                self._evaluation_ends = None if event.longest_s is None else self.clock() + event.longest_s
            case e.AttemptEvaluated():
                line, passed = self._line(event), event.status is e.EvaluationStatus.PASSED
                line.state = "verified" if event.evidence is e.Evidence.VERIFIED else event.status.value
                if event.speedup or not (passed or event.status is e.EvaluationStatus.HARNESS_ERROR):
                    line.speedup = event.speedup
                line.note = "" if passed else next(iter(event.reasons), "")
                line.reasons, line.level = event.reasons, event.level.value
            case e.AttemptFailed():
                line = self._line(event)
                line.state, line.note = "no solution", event.error
            case e.Promotion():
                if row := self.rows.get(event.bottleneck):
                    row.speedup, row.time_s = event.time_before_s / event.time_s, event.time_s
                self._line(event).state = "promoted"
            case e.AttemptReflected():
                line = self._line(event)
                line.why_not = self._why_not(line, verified=event.verified)
            case _:
                return None
        return _Known()

    def _row(self, b: ProfiledBottleneck) -> Row:
        """A row of a profile; one of an earlier profile keeps its state and attempts."""
        from agentforge.schema import obstacle

        known = self.rows.get(b.hash)
        state = (known.state if known else "") or ("" if b.optimizable else obstacle(b.op_type))
        attempts = known.attempts if known else 0
        return Row(b.name, b.share, b.time_s, b.sol_s, b.speedup_limit, attempts, state=state)

    @staticmethod
    def _now(row: Row, b: ProfiledBottleneck) -> Row:
        """A row after the bottlenecks were ranked anew."""
        faster = row.time_s / b.time_s if b.time_s else 1.0  # a resumed run tells its promotions in this way
        return replace(
            row, share=b.share, time_s=b.time_s, limit=b.speedup_limit, speedup=row.speedup * faster
        )

    def _why_not(self, line: Line, *, verified: bool) -> str:
        """Why a timed attempt was not promoted; empty if it was, or has failed."""
        if line.state == "promoted" or line.note or not line.speedup:
            return ""
        row = self.rows.get(line.bottleneck)
        before = f"the incumbent, {row.speedup:.2f}x" if row and row.speedup != 1.0 else "eager"
        if verified or line.level == "quick":
            return f"not enough faster than {before}"
        return f"not verified: {'; '.join(line.reasons) or 'no reason was given'}"

    def _call(self, event: LLMBegun | LLMAnswered | LLMFailed) -> _Known:
        from agentforge.schema import LLMBegun, LLMFailed

        if isinstance(event, LLMBegun):
            self.asking[_agent(event)] = event.model
            return _Known()
        self.asking.pop(_agent(event), None)
        self.tokens += event.tokens_in + event.tokens_out
        unknown = self.spent is None or event.dollars is None
        self.spent = None if unknown else (self.spent or 0.0) + (event.dollars or 0.0)
        return _Known(f"{event.role}: {event.error}" if isinstance(event, LLMFailed) else "")

    def _line(self, event: AttemptEvent) -> Line:
        number = event.number
        if number not in self.lines:
            self.lines[number] = Line(number, event.bottleneck)
            if event.bottleneck in self.rows:
                self.rows[event.bottleneck].attempts += 1
        return self.lines[number]


@dataclass(frozen=True)
class _Known:
    """That an event was taken in, and the activity that it names."""

    text: str = ""


def _agent(call: LLMBegun | LLMAnswered | LLMFailed) -> str:
    """`coder #3`; the planner of a whole model has no number."""
    number = call.attempt.rpartition("/")[2]
    return f"{call.role} #{int(number)}" if number else call.role
