"""What the supervisor does with one attempt: plan, code, evaluate, judge, record.

Each action can be repeated after a kill: a stored result is not computed again. Actions on different
attempts may run side by side, except `evaluate` and `record`, which the graph calls one at a time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock

from agentforge.agents import CODER_FAILED, PLANNER_FAILED, Hardware
from agentforge.config import SearchSettings
from agentforge.knowledge import KnowledgeBase
from agentforge.llm import CannotAfford
from agentforge.referee import Builder, Disassembler, Evaluator
from agentforge.schema import (
    AgentForgeError,
    Attempt,
    AttemptBuilding,
    AttemptCoded,
    AttemptCoding,
    AttemptFailed,
    AttemptJudged,
    AttemptJudging,
    AttemptPlanned,
    AttemptPlanning,
    AttemptStatus,
    BottleneckClosed,
    BudgetLeft,
    CannotCode,
    Critique,
    Evaluation,
    EvaluationStatus,
    Level,
    Profile,
    ProfileRanked,
    Progress,
    Solution,
    TargetError,
    TimeEnded,
    Usage,
)

from ._base import Agents, PendingAttempt, SearchedBottleneck
from ._describe import add_usage, error_text, paid, promotion, reflected, sentence, which
from .attempt_referee import AttemptReferee
from .bottleneck_state import BottleneckState
from .budget import BudgetMeter
from .run_log import RunLog
from .tasks import Tasks, find, first_plan, with_cards


@dataclass(frozen=True)
class Supervisor:
    """One attempt at a time, and everything that is decided about it."""

    profile: Profile
    """With the regions that the plan for the whole model merges."""
    bottlenecks: dict[str, SearchedBottleneck]
    """By hash of the definition, in the order of the plan for the whole model."""
    run_log: RunLog
    meter: BudgetMeter
    agents: Agents
    evaluator: Evaluator
    knowledge: KnowledgeBase
    settings: SearchSettings
    hardware: Hardware
    device: str
    """Kind of device: `cpu`, `cuda`."""
    patient: bool = True
    measuring: Lock = field(default_factory=Lock)
    """Nothing else is built or measured meanwhile."""

    def plan(self, child: PendingAttempt) -> bool:
        """Ask the planner; False if it has nothing left to propose for the bottleneck."""
        if self.run_log.attempt(child["attempt"]) is not None:
            return True
        name, started = child["bottleneck"], time.monotonic()
        new = Attempt(
            id=child["attempt"],
            run=self.run_log.run.id,
            bottleneck=name,
            parent=child["parent"],
            number=self.run_log.number(child["attempt"]),
            target=child.get("target", ()),
            coder=child.get("coder", ""),
            directive=child.get("directive", ""),
        )
        self.run_log.event(AttemptPlanning(**which(new)))
        task = self.tasks.task(name, new.id, parent=child["parent"], target=new.target)
        try:
            plan, parent = first_plan(self.agents.planner, task, child["parent"])
        except AgentForgeError:
            raise
        except CannotAfford as error:
            self.meter.stop(str(error))
            return True
        except Exception as why:
            self.fail(new, error_text(PLANNER_FAILED, why), started, why)
            return True
        if plan is None:
            kind = f"to propose in {self.settings.language} for a {self.device}"
            reason = f"the planner has nothing {'left to propose' if task.past else kind}"
            self.run_log.event(BottleneckClosed(bottleneck=name, reason=reason))
            return False
        if parent != child["parent"]:
            self.run_log.give_up(child["parent"])
        usage = add_usage(Usage(), plan.usage, started=started)
        self.keep_plan(with_cards(new, task.served, plan=plan, parent=parent, usage=usage))
        return True

    def keep_plan(self, attempt: Attempt) -> None:
        """Begin an attempt with its plan."""
        plan = attempt.plan
        assert plan is not None
        self.run_log.put(attempt)
        self.run_log.event(
            AttemptPlanned(
                **which(attempt),
                parent=attempt.parent,
                strategy=plan.strategy,
                language=plan.language,
                expected_speedup=plan.expected_speedup,
                diagnosis=plan.change or plan.diagnosis,
                author=plan.author,
            )
        )

    def code(self, child: PendingAttempt) -> None:
        """Ask the coder for the whole solution; if it cannot, the attempt fails."""
        attempt = self.run_log.attempt(child["attempt"])
        if attempt is None or attempt.plan is None or attempt.status is not AttemptStatus.PLANNED:
            return
        started = time.monotonic()
        task = self.tasks.task(attempt.bottleneck, attempt.id, hide_solutions_from=child["round"])
        if self.settings.agents == "dialogue":
            task = replace(
                task,
                check=partial(self._try, attempt),
                measure=partial(self._measure, attempt),
                drafts=self.settings.drafts,
                machine_code=self._machine_code if isinstance(self.evaluator, Disassembler) else None,
                twin=partial(self._twin, attempt),
                exclusive=self.measuring,
            )
        self.run_log.event(AttemptCoding(**which(attempt)))
        try:
            draft = self.agents.coder.code(task, attempt.plan, find(task.past, attempt.parent))
        except CannotCode as error:
            self.fail(with_cards(attempt, task.served), sentence(error), started)
            return
        except CannotAfford as error:  # the attempt stays as it is, for a resume under a larger budget
            self.meter.stop(str(error))
            return
        except AgentForgeError:
            raise
        except Exception as why:
            self.fail(with_cards(attempt, task.served), error_text(CODER_FAILED, why), started, why)
            return
        usage = add_usage(attempt.usage, draft.usage, started=started)
        self.keep_solution(with_cards(attempt, task.served, usage=usage), draft.solution)

    def keep_solution(self, attempt: Attempt, solution: Solution) -> None:
        """Store what was written for an attempt."""
        attempt = self.run_log.with_solution(attempt, solution)
        self.run_log.put(attempt.model_copy(update={"status": AttemptStatus.CODED}))
        self.run_log.event(
            AttemptCoded(
                **which(attempt),
                solution=solution.hash,
                author=solution.author,
                language=solution.spec.language,
                parameters=solution.parameters,
            )
        )

    def build(self, child: PendingAttempt) -> None:
        """Compile ahead of the evaluation, while other attempts are still being written."""
        attempt = self.run_log.attempt(child["attempt"])
        ready = attempt is not None and attempt.status is AttemptStatus.CODED and attempt.solution
        if attempt is not None and ready and isinstance(self.evaluator, Builder):
            self.run_log.event(AttemptBuilding(**which(attempt)))
            with self.measuring:
                self.evaluator.build(self.run_log.solution_of(attempt))

    def _try(
        self, attempt: Attempt, solution: Solution, level: Level, *, quiet: bool = False
    ) -> Evaluation | None:
        """Evaluate a coder's answer before it becomes the attempt's; the evaluation is reused.

        None if the budget is used up or nothing of the bottleneck can be judged.
        """
        if self.out_of_budget():
            return None
        tried = self.run_log.with_solution(attempt, solution)
        try:
            with self.measuring:
                return self.referee.evaluate(tried, level, quiet=quiet, deadline=self.meter.deadline)[1]
        except (TargetError, TimeEnded):
            return None  # the evaluation of the attempt says so

    def _measure(self, attempt: Attempt, solution: Solution, level: Level) -> Evaluation | None:
        """Evaluate what the attempt will be compared with; views do not show it as the attempt's."""
        name = self.bottlenecks[attempt.bottleneck].bottleneck.definition.name
        self.run_log.event(Progress(text=f"measuring what a first draft for {name} has to beat"))
        return self._try(attempt, solution, level, quiet=True)

    def _twin(self, attempt: Attempt, solution: Solution) -> str:
        tried = self.run_log.with_solution(attempt, solution)
        with self.measuring:
            return self.referee.twin(self.referee.compiled(tried))

    def _machine_code(self, solution: Solution) -> str:
        assert isinstance(self.evaluator, Disassembler)
        with self.measuring:
            return self.evaluator.machine_code(solution)

    def evaluate(self, child: PendingAttempt, *, bounded: bool = True) -> bool:
        """Judge at `quick`; a solution that looks faster than the incumbent is judged again at `full`.

        If the time ends meanwhile, the attempt stays as it was, for a resume: the minutes if `bounded`, the
        run's own limit in any case. False if nothing of this bottleneck can be judged.
        """
        attempt = self.run_log.attempt(child["attempt"])
        if attempt is None or attempt.status is not AttemptStatus.CODED:
            return True
        meter, started = self.meter, time.monotonic()
        end = meter.end(first=self.run_log.unjudged) if bounded else meter.limit
        if ":" in self.settings.coder and bounded:
            attempt = self.run_log.put(self.referee.compiled(attempt))
            if twin := self.referee.twin(attempt):
                self.fail(attempt, f"{twin}, so nothing was measured", started)
                return True
        try:
            identifier, evaluation = self.referee.evaluate(attempt, Level.QUICK, deadline=end)
            if self.settings.tune and evaluation.passed:
                task, most = self.tasks.task(attempt.bottleneck, attempt.id), self.settings.tune
                attempt = self.referee.tuned(attempt, evaluation, task, most, self.out_of_budget, end)
                identifier, evaluation = self.referee.evaluate(attempt, Level.QUICK, deadline=end)
            state = self.bottleneck_state(attempt.bottleneck)
            if state.promising(evaluation):
                end = meter.end(first=state.incumbent is None) if bounded else end
                identifier, evaluation = self.referee.evaluate(attempt, Level.FULL, deadline=end)
        except TimeEnded:
            self.referee.time_ended(attempt)
            return True
        except TargetError as error:  # of this bottleneck's reference: the others can still be searched
            self.fail(attempt, f"the region cannot be judged: {error}", started)
            return False
        usage = add_usage(attempt.usage, started=started)
        update = {"evaluation": identifier, "status": AttemptStatus.EVALUATED, "usage": usage}
        self.run_log.put(attempt.model_copy(update=update))
        return True

    def judge(self, child: PendingAttempt) -> None:
        """Ask the judge what to do next with the solution."""
        attempt = self.run_log.attempt(child["attempt"])
        if attempt is None or attempt.status is not AttemptStatus.EVALUATED or attempt.critique is not None:
            return
        started = time.monotonic()
        self.run_log.event(AttemptJudging(**which(attempt)))
        try:
            critique = self._critique(attempt, child["round"])
        except AgentForgeError:
            raise
        except Exception as error:
            cause = f"the judge failed: {sentence(error)}"
            critique = Critique(kind="abandon", cause=cause, author="supervisor")
        usage = add_usage(attempt.usage, critique.usage, started=started)
        self.run_log.put(attempt.model_copy(update={"critique": critique, "usage": usage}))
        self.run_log.event(
            AttemptJudged(
                **which(attempt),
                verdict=critique.kind,
                error_class=critique.error_class,
                cause=critique.cause,
                change=critique.change,
            )
        )

    def record(self, child: PendingAttempt) -> None:
        """Update the knowledge base, promote a verified faster solution, and finish the attempt."""
        attempt = self.run_log.attempt(child["attempt"])
        if attempt is None or attempt.plan is None or attempt.status is not AttemptStatus.EVALUATED:
            return
        self.remember(attempt)
        self.run_log.put(attempt.model_copy(update={"status": AttemptStatus.DONE}))
        self.run_log.spend(self.meter.seconds)
        self._ended(attempt)

    def _ended(self, attempt: Attempt) -> None:
        self.run_log.event(BudgetLeft(left=self.budget_left()))
        self.close_if_finished(attempt.bottleneck)

    def remember(self, attempt: Attempt) -> None:
        """Give the knowledge base what was measured, and promote a verified faster solution. Idempotent."""
        plan, (evaluation, solution) = attempt.plan, self.measured(attempt)
        assert plan is not None
        if evaluation.status is not EvaluationStatus.HARNESS_ERROR:
            context, parent = self.bottlenecks[attempt.bottleneck].context, self.run_log.built_on(attempt)
            values = {**plan.parameters, **solution.parameters}
            self.knowledge.record(
                plan.strategy, context, solution, evaluation, values, attempt.run, parent=parent
            )
        self._promote(attempt, evaluation)
        speedup = self._alone(attempt.bottleneck).best_baseline.speedup(evaluation)
        self.run_log.event(reflected(attempt, plan, evaluation, speedup))

    @property
    def tasks(self) -> Tasks:
        """What the agents are shown."""
        own = self.settings
        return Tasks(
            self.bottlenecks, self.run_log, self.knowledge, own.language, self.hardware, self.device,
            own.advice_tokens, bool(own.tune), own.contrast_tokens,
        )  # fmt: skip

    @property
    def referee(self) -> AttemptReferee:
        """Evaluates attempts; an evaluation that the run finished before is not repeated."""
        return AttemptReferee(self.bottlenecks, self.run_log, self.evaluator)

    def out_of_budget(self, *, new_attempts: int | None = None) -> str:
        """Why no further step may be taken; empty while there is budget left.

        Args:
            new_attempts: that were chosen and are not stored yet; None if the next step belongs to
                an attempt that counts already.
        """
        attempts = None if new_attempts is None else len(self.run_log.attempts()) + new_attempts
        return self.meter.exhausted(dollars=self.run_log.dollars(), attempts=attempts)

    def budget_left(self) -> dict[str, float | None]:
        """The rest of each limit."""
        return self.meter.left(dollars=self.run_log.dollars(), attempts=len(self.run_log.attempts()))

    def bottleneck_state(self, bottleneck: str) -> BottleneckState:
        """State of the search of a bottleneck."""
        return self.bottleneck_states(bottleneck)[bottleneck]

    def bottleneck_states(self, *names: str) -> dict[str, BottleneckState]:
        """State of the search of these bottlenecks; of all without names."""
        faster = self.profile.faster(self.speedups)
        return {name: replace(self._alone(name), faster=faster) for name in names or self.bottlenecks}

    def _alone(self, bottleneck: str) -> BottleneckState:
        made, found = self.run_log.attempts(bottleneck), self.run_log.evaluations(bottleneck)
        return BottleneckState(self.bottlenecks[bottleneck].bottleneck, made, found, patient=self.patient)

    @property
    def speedups(self) -> dict[str, float]:
        """Of the incumbents over eager, by bottleneck."""
        tried = {a.bottleneck for a in self.run_log.attempts()} & self.bottlenecks.keys()
        return {name: state.speedup for name in tried if (state := self._alone(name)).incumbent}

    def rank(self) -> None:
        """Tell how much time is left where with the incumbents in place; nothing if there are none."""
        if speedups := self.speedups:
            self.run_log.event(ProfileRanked.of(self.profile.with_solutions(speedups)))

    def measured(self, attempt: Attempt) -> tuple[Evaluation, Solution]:
        """The evaluation and the solution of an attempt that was evaluated."""
        evaluation = self.run_log.evaluation(attempt)
        if evaluation is None or attempt.solution is None:
            raise KeyError(f"attempt {attempt.id} was not evaluated")
        return evaluation, self.run_log.solution_of(attempt)

    def fail(self, attempt: Attempt, error: str, started: float, *causes: Exception) -> None:
        """End an attempt that has no solution, or none that can be judged."""
        usage = add_usage(attempt.usage, *map(paid, causes), started=started)
        update = {"status": AttemptStatus.FAILED, "error": error, "usage": usage}
        self.run_log.put(attempt.model_copy(update=update))
        self.run_log.event(AttemptFailed(**which(attempt), error=error))
        self._ended(attempt)

    def close_if_finished(self, bottleneck: str) -> None:
        """Say that a bottleneck is closed, unless an attempt at it is to be measured again first."""
        state = self.bottleneck_state(bottleneck)
        if (reason := state.closed(self.settings)) and not state.contenders(1):
            self.run_log.event(BottleneckClosed(bottleneck=bottleneck, reason=reason))

    def _critique(self, attempt: Attempt, first: int) -> Critique:
        evaluation, solution = self.measured(attempt)
        if evaluation.status is EvaluationStatus.HARNESS_ERROR:
            self.referee.check_health(attempt, evaluation)
            return Critique(kind="abandon", cause="the referee failed; nothing is said", author="supervisor")
        assert attempt.plan is not None
        task = self.tasks.task(attempt.bottleneck, attempt.id, hide_critiques_from=first)
        critique = self.agents.judge.judge(task, attempt.plan, solution, evaluation)
        return critique.model_copy(update={"served": tuple(sorted(task.served))})

    def _promote(self, attempt: Attempt, evaluation: Evaluation) -> None:
        state = self.bottleneck_state(attempt.bottleneck)
        if state.incumbent is not None and state.incumbent[0].id == attempt.id:
            self.run_log.promote(attempt)
            self.run_log.event(promotion(attempt, evaluation, state.bottleneck.time_s, state.time_s))
            self.rank()
