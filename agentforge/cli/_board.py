"""What a view knows of a run: the fold of its events, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentforge.schema import Event


@dataclass
class Row:
    """A bottleneck."""

    name: str
    share: float
    time_s: float
    sol_s: float
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
    speedup: Mapping[str, Any] = field(default_factory=dict)
    expected: float | None = None
    note: str = ""


@dataclass
class Board:
    """The run as its events so far tell it."""

    run: str = ""
    phase: str = "starting"
    rows: dict[str, Row] = field(default_factory=dict)
    lines: dict[int, Line] = field(default_factory=dict)
    budget: Mapping[str, float | None] = field(default_factory=dict)
    total_s: float = 0.0
    doing: str = ""
    """What goes on within a phase."""
    asking: dict[str, str] = field(default_factory=dict)
    """Agents that wait for a model's answer, and for whose."""
    tokens: int = 0
    """Of language models, in and out."""
    spent: float | None = 0.0
    """Dollars for them; None where a price is unknown."""

    def apply(self, event: Event) -> None:
        """Take one event in; kinds that no view shows are passed over."""
        handler = getattr(self, "_" + event.kind.replace(".", "_"), None)
        if handler is not None:
            self.doing = ""
            handler(dict(event.data))

    def _run_started(self, data: dict[str, Any]) -> None:
        self.run, self.phase = data["run"], "profiling"

    def _run_resumed(self, data: dict[str, Any]) -> None:
        self.run, self.phase = data["run"], "resuming"

    def _profile_done(self, data: dict[str, Any]) -> None:
        self.total_s, self.phase = data["total_s"], "searching"
        for b in data["bottlenecks"]:
            state = "" if b["optimizable"] else "vendor library"
            self.rows[b["hash"]] = Row(b["name"], b["share"], b["time_s"], b["sol_s"], state=state)

    def _progress(self, data: dict[str, Any]) -> None:
        self.doing = data["text"]

    def _attempt_planned(self, data: dict[str, Any]) -> None:
        line = self._line(data)
        line.strategy, line.expected, line.state = data["strategy"], data["expected_speedup"], "coding"

    def _attempt_coded(self, data: dict[str, Any]) -> None:
        self._line(data).state = "built next"

    def _attempt_evaluating(self, data: dict[str, Any]) -> None:
        self._line(data).state = "measuring" if data["level"] == "quick" else "verifying"

    def _attempt_evaluated(self, data: dict[str, Any]) -> None:
        line = self._line(data)
        line.state = data["status"] if data["evidence"] != "verified" else "verified"
        line.speedup = data["speedup"] or line.speedup
        line.note = (data["reasons"] or [""])[0] if data["status"] != "PASSED" else ""

    def _attempt_failed(self, data: dict[str, Any]) -> None:
        line = self._line(data)
        line.state, line.note = "no solution", data["error"]

    def _llm_begun(self, data: dict[str, Any]) -> None:
        self.asking[_agent(data)] = data["model"]

    def _llm_answered(self, data: dict[str, Any]) -> None:
        self.asking.pop(_agent(data), None)
        self.tokens += data["tokens_in"] + data["tokens_out"]
        unknown = self.spent is None or data["dollars"] is None
        self.spent = None if unknown else (self.spent or 0.0) + data["dollars"]

    def _llm_failed(self, data: dict[str, Any]) -> None:
        self._llm_answered(data)
        self.doing = f"{data['role']}: {data['error']}"

    def _promotion(self, data: dict[str, Any]) -> None:
        row = self.rows.get(data["bottleneck"])
        if row is not None:
            row.speedup = data["time_before_s"] / data["time_s"]
        self._line(data).state = "promoted"

    def _bottleneck_closed(self, data: dict[str, Any]) -> None:
        row = self.rows.get(data["bottleneck"])
        if row is not None:
            row.state = data["reason"]

    def _budget(self, data: dict[str, Any]) -> None:
        self.budget = data["left"]

    def _stitch_started(self, data: dict[str, Any]) -> None:
        self.phase = "putting kernels in and measuring end to end"

    def _run_finished(self, data: dict[str, Any]) -> None:
        self.phase = "finished"

    def _line(self, data: Mapping[str, Any]) -> Line:
        number = data["number"]
        if number not in self.lines:
            self.lines[number] = Line(number, data["bottleneck"])
            if data["bottleneck"] in self.rows:
                self.rows[data["bottleneck"]].attempts += 1
        return self.lines[number]


def _agent(call: Mapping[str, Any]) -> str:
    """`coder #3`; the planner of a whole model has no number."""
    number = call["attempt"].rpartition("/")[2]
    return f"{call['role']} #{int(number)}" if number else call["role"]
