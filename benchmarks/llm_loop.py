"""Verified wins per model call: the loop as it is against the rules that it had before.

    python benchmarks/llm_loop.py [--seeds 3] [--noisy-runs 1000] [--workers 2] [--out FILE]

Agents, prompts, ledger, store, policy and loop are real. The model is scripted, and the referee and the
clock are simulated. The model's error rates are those of a capable model's 22 attempts in five recorded runs.
`before` is a small model of the old rules on top of the present code, see `Old`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from _provenance import provenance  # noqa: E402
from _published import whole_or_elsewhere  # noqa: E402

from agentforge.agents import Task  # noqa: E402
from agentforge.agents.llm import LLMCoder, LLMJudge, LLMPlanner  # noqa: E402
from agentforge.agents.llm.role import Objection, Role  # noqa: E402
from agentforge.config import LLMSettings, SearchSettings  # noqa: E402
from agentforge.devices import DeviceSpec  # noqa: E402
from agentforge.llm import Ledger, Request, Response, Tokens  # noqa: E402
from agentforge.loop import Agents, BudgetMeter, RunLog, Session, run_search  # noqa: E402
from agentforge.loop.bottleneck_state import BottleneckState  # noqa: E402
from agentforge.referee import EvaluationRequest, OnStage  # noqa: E402
from agentforge.schema import (  # noqa: E402
    Budget,
    Critique,
    Evaluation,
    Evidence,
    Interval,
    Level,
    Plan,
    ReasonCode,
    Solution,
)
from agentforge.search import BestFirst  # noqa: E402
from agentforge.store import Store  # noqa: E402
from tests.agents.llm.scene import HARDWARE  # noqa: E402
from tests.loop.conftest import make_run  # noqa: E402
from tests.loop.scripted import (  # noqa: E402
    DEVICE,
    NullKnowledge,
    ScriptedCoder,
    ScriptedJudge,
    ScriptedPlanner,
    SimulatedReferee,
    bottleneck,
    context_for,
    profile,
)

RESULT = Path(__file__).parent / "results" / "llm_loop.json"

STRENGTHS = {"strong": 2 / 8, "medium": 9 / 22, "weak": 5 / 9}
"""Share of first answers that failed in the recorded runs: the two best runs, all five, the worst."""
REPAIRS_FAIL = 0.15
"""Share of repairs that fail; nearly all recorded ones succeeded in one turn."""
BAD_CITATIONS = 4 / 30
"""Share of answers with one value that was not measured, beside others that were."""
ACCEPTED = 3 / 13
"""Share of right kernels of which the judge said that nothing is left."""
SLOWER = 2 / 13
"""Share of right kernels that were slower than a baseline."""
ROOMS = (6.3, 3.3, 2.4, 2.0, 2.0, 1.88, 1.5, 1.3, 1.22, 1.15)
"""Ten problems: what a good kernel reaches over the best baseline, as the recorded kernels did."""
CALL_S, QUICK_S, FULL_S = 15.0, 30.0, 120.0
"""Simulated seconds of a call and of the evaluations."""
BUSY = (0.5, 0.8)
"""Probabilities that the machine is too busy during a full evaluation. It was in all of the recorded runs."""
WINNER = 1.1
"""True speedup from which a kernel that passed is a winner."""
_UNMEASURED = "l2_miss_rate"


class Model:
    """A model of a given strength. It reads from its prompts what the kernels in them are worth."""

    spec, model, endpoint, price = "simulated:m", "simulated", "nowhere", None

    def __init__(self, seed: int, errors: float, room: float, clock: Clock) -> None:
        self.random, self.errors, self.room, self.clock = random.Random(seed), errors, room, clock
        self.calls: Counter[str] = Counter()
        self.avoidable: Counter[str] = Counter()
        self.tokens = 0
        self.accepted = False
        self.best = 0.0
        self.written = 0

    def complete(self, request: Request) -> Response:
        """See `LanguageModel.complete`."""
        system, asked, last = "\n".join(request.system), request.messages[0].text, request.messages[-1].text
        signs = {"You plan the": "planner", "You write fast": "coder", "You judge one": "judge"}
        role = next(role for sign, role in signs.items() if sign in system)
        self.calls[role] += 1
        if self.accepted:
            self.avoidable["after accept"] += 1
        elif last.startswith("Your answer cannot be used"):
            self.avoidable["one bad citation"] += 1
        elif role == "judge" and "(class: compile)" in asked:
            self.avoidable["judge on a compile error"] += 1
        text = self._coder(request) if role == "coder" else self._json(role, asked)
        tokens = Tokens(input=request.characters // 4, output=len(text) // 4)
        self.tokens += tokens.input + tokens.output
        self.clock.now += CALL_S
        return Response(text=text, model=self.model, tokens=tokens)

    def _json(self, role: str, asked: str) -> str:
        evidence = [{"metric": n, "value": v} for n, v in _values(asked)]
        if self.random.random() < BAD_CITATIONS:
            evidence.append({"metric": _UNMEASURED, "value": 0.5})
        if role == "planner":
            return json.dumps({
                "bottleneck": "memory", "diagnosis": "it moves too much", "evidence": evidence,
                "strategy": f"technique-{_word(self.random)}", "steps": ["one pass over memory"],
                "parameters": [], "expected_speedup": 2.0, "risks": [],
            })  # fmt: skip
        if "The referee says" in asked:
            return json.dumps({"cause": "an index", "fix": "correct it", "evidence": []})
        speed = _kernel(asked)["speed"]
        done = speed >= 0.95 * self.room or (speed >= self.best and self.random.random() < ACCEPTED)
        self.best = max(self.best, speed)
        self.accepted = self.accepted or done
        return json.dumps({
            "verdict": "accept" if done else "optimize", "bottleneck": "memory", "evidence": evidence,
            "change": "wider loads", "expected_gain": 0.1,
        })  # fmt: skip

    def _coder(self, request: Request) -> str:
        asked, chance = request.messages[0].text, self.random.random()
        if len(request.messages) > 1:
            errors, speed = REPAIRS_FAIL, _kernel(request.messages[-2].text)["speed"]
        elif asked.startswith("The attempt to change"):
            parent = _kernel(asked)
            right = parent["status"] == "PASSED"
            errors = self.errors / 2 if right else REPAIRS_FAIL
            speed = parent["speed"] * (self.random.uniform(0.95, 1.25) if right else 1.0)
        else:
            errors = self.errors
            slower = self.random.random() < SLOWER
            speed = 0.8 if slower else self.room ** self.random.uniform(0.5, 1.0)
        failure = "COMPILE_ERROR" if chance < errors / 2 else "INCORRECT_NUMERICAL"
        self.written += 1
        kernel = {
            "speed": round(min(speed, self.room), 4),
            "status": failure if chance < errors else "PASSED",
            "number": self.written,
        }
        return f"FILE: model_new.py\n```python\n# {json.dumps(kernel)}\nclass ModelNew: ...\n```\n"


@dataclass
class Clock:
    """Simulated seconds."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class NoisyReferee(SimulatedReferee):
    """Its clock errs by 5%. A full evaluation finds the machine busy with probability `busy`; it errs by 20%
    then, and its interval is twice as wide."""

    clock: Clock = field(default_factory=Clock)
    random: random.Random = field(default_factory=random.Random)
    busy: float = 0.5
    names_the_cause: bool = True
    """False: the loop does not learn that only the busy machine kept a result from being verified."""

    def evaluate(self, request: EvaluationRequest, *, progress: OnStage | None = None) -> Evaluation:
        """See `Evaluator`."""
        self.clock.now += FULL_S if request.level is Level.FULL else QUICK_S
        own = request.solution.author == "reference"  # judged for its times, before a kernel is written
        said = {"speed": 1.0} if own else _kernel(request.solution.source("model_new.py"))
        busy = request.level is Level.FULL and self.random.random() < self.busy
        self.speed = said["speed"] * self.random.lognormvariate(0.0, 0.2 if busy else 0.05)
        found = super().evaluate(request, progress=progress)
        if not found.passed:
            return found.model_copy(update={"reasons": (f"it fails in {_word(self.random)}",)})
        if busy:
            assert found.performance is not None
            wide = {
                name: Interval(point=x.point, low=x.point * 0.6, high=x.point * 1.4)
                for name, x in found.performance.speedup.items()
            }
            return found.model_copy(
                update={
                    "evidence": Evidence.UNVERIFIED,
                    "reasons": ("the control drifted",),
                    "codes": (ReasonCode.NOISY_CONTROL,) if self.names_the_cause else (),
                    "performance": found.performance.model_copy(update={"speedup": wide}),
                }
            )
        return found


class Old:
    """The old rules: one answer per attempt, a planner's call for each change, four attempts without a gain
    (a failure counts as one), nothing is measured again, `accept` closes nothing, all citations must hold."""

    class Planner(LLMPlanner):
        """Asks for a plan after `optimize` too."""

        def _changed(self, task: Task, parent: Any, closed: dict[str, str]) -> Plan | None:
            repair = parent is not None and parent.critique is not None and parent.critique.kind == "repair"
            return super()._changed(task, parent, closed) if repair else None

    class Judge(LLMJudge):
        """Its `accept` ends one attempt only."""

        def judge(self, task: Task, plan: Plan, solution: Solution, evaluation: Evaluation) -> Critique:
            """See `Judge.judge`."""
            found = super().judge(task, plan, solution, evaluation)
            return found.model_copy(update={"closes": False})

    class Role(Role):
        """Sends an answer back if any citation is wrong."""

        def ask(
            self, system: tuple[str, ...], prompt: str, take: Callable[[Response, bool], Any], **options: Any
        ) -> Any:
            """See `Role.ask`."""

            def strict(response: Response, again: bool) -> Any:
                if not again and _UNMEASURED in response.text:
                    raise Objection(f"no value named {_UNMEASURED!r} was measured")
                return take(response, again)

            return super().ask(system, prompt, strict, **options)

    @staticmethod
    @contextlib.contextmanager
    def counting() -> Iterator[None]:
        """Each finished attempt counts as one without a gain."""
        with patch.object(BottleneckState, "weight", lambda self, attempt: 1.0):
            yield


@dataclass(frozen=True)
class Result:
    """One run at one problem."""

    won: bool
    """A verified result that is faster than both baselines."""
    calls: int
    tokens: int
    avoidable: dict[str, int]
    missed: bool
    """A winner passed, and nothing was verified."""
    given_up: bool
    """The same, although minutes were left to measure it again."""


def run(seed: int, room: float, *, errors: float, before: bool, busy: float) -> Result:
    """Search one problem for at most 9 attempts and 45 simulated minutes, as in the recorded runs."""
    clock = Clock()
    model = Model(seed, errors, room, clock)
    referee = NoisyReferee(clock=clock, random=random.Random(seed + 1), busy=busy, names_the_cause=not before)
    role: type[Role] = Role
    planner: type[LLMPlanner] = LLMPlanner
    judge: type[LLMJudge] = LLMJudge
    budget, llm = Budget(attempts=9, minutes=45), LLMSettings()
    if before:
        settings = SearchSettings(language="python", patience=4, agents="one-shot")
        policy, role, planner, judge = BestFirst(), Old.Role, Old.Planner, Old.Judge
    else:
        spec = {"planner": model.spec, "coder": model.spec, "judge": model.spec}
        settings = SearchSettings(language="python", children=1, **spec)  # as in the recorded runs
        policy = BestFirst(**settings.policy_options)
    with tempfile.TemporaryDirectory(dir=_memory()) as name, contextlib.ExitStack() as stack:
        store = stack.enter_context(Store(f"sqlite:///{name}/agentforge.db"))
        if before:
            stack.enter_context(Old.counting())
        ledger = Ledger(store, "run", budget)
        agents = Agents(
            planner(role("planner", model, ledger, llm)),
            LLMCoder(role("coder", model, ledger, llm)),
            judge(role("judge", model, ledger, llm)),
        )
        won, missed, given_up = _search(store, Path(name), budget, agents, referee, policy, settings)
    calls = sum(model.calls.values())
    return Result(won, calls, model.tokens, dict(model.avoidable), missed, given_up)


def _search(
    store: Store,
    folder: Path,
    budget: Budget,
    agents: Agents,
    referee: NoisyReferee,
    policy: BestFirst,
    settings: SearchSettings,
) -> tuple[bool, bool, bool]:
    """Whether a result was verified, a winner was not, and a winner was not although minutes were left."""
    store.create_run(make_run(budget=budget))
    session = Session(
        agents=agents, evaluator=referee, knowledge=NullKnowledge(), context_for=context_for,
        policy=policy, settings=settings, hardware=HARDWARE,
        device=DeviceSpec(kind="null", name=DEVICE, architecture="null"),
    )  # fmt: skip
    run_log = RunLog(store, store.get_run("run"))
    region = profile(bottleneck("a", time_s=1.0, sol_s=1e-6))
    meter = BudgetMeter(budget, clock=referee.clock)
    found = run_search(region, run_log, meter, session, checkpoint=folder / "checkpoint.db")
    winners = []
    for attempt in store.attempts("run"):
        if attempt.evaluation and store.get_evaluation(attempt.evaluation).level is Level.FULL:
            kernel = _kernel(run_log.solution(attempt.solution or "").source("model_new.py"))
            winners += [attempt] if kernel["speed"] > WINNER else []
    missed = bool(winners) and not found.wins
    return bool(found.wins), missed, missed and not meter.out_of_minutes


def noisy(seed: int) -> tuple[bool, bool, bool]:
    """A run of three scripted attempts without a model, under a clock that is often disturbed."""
    source, clock = random.Random(seed), Clock()
    script = {"a": [{"speed": round(source.uniform(0.8, 3.0), 3)} for _ in range(3)]}
    referee = NoisyReferee(clock=clock, random=source, busy=source.choice((0.3, 0.6, 0.9)))
    budget = Budget(attempts=3, minutes=source.choice((5, 15, 45)))
    agents = Agents(ScriptedPlanner(script), ScriptedCoder(), ScriptedJudge())
    with tempfile.TemporaryDirectory(dir=_memory()) as name, Store(f"sqlite:///{name}/a.db") as store:
        return _search(store, Path(name), budget, agents, referee, BestFirst(), SearchSettings())


def summary(results: list[Result]) -> dict[str, Any]:
    """Sums over runs."""
    calls, wins = sum(r.calls for r in results), sum(r.won for r in results)
    avoidable: Counter[str] = Counter()
    for result in results:
        avoidable.update(result.avoidable)
    return {
        "runs": len(results),
        "problems_won": wins,
        "calls": calls,
        "wins_per_100_calls": round(100 * wins / calls, 2),
        "calls_per_win": round(calls / wins, 1) if wins else None,
        "tokens_per_win": round(sum(r.tokens for r in results) / wins) if wins else None,
        "avoidable_per_100_calls": round(100 * sum(avoidable.values()) / calls, 1),
        "avoidable": dict(avoidable),
        "winners_not_verified": sum(r.missed for r in results),
        "winners_given_up": sum(r.given_up for r in results),
    }


def compare(seeds: int, busy: float, pool: Executor) -> dict[str, Any]:
    """Both sets of rules at the same problems, models and noise."""
    found: dict[str, Any] = {}
    cases = [(1000 * s + p, room) for s in range(seeds) for p, room in enumerate(ROOMS)]
    every: dict[str, list[Result]] = {"before": [], "after": []}
    for strength, errors in STRENGTHS.items():
        for name in every:
            before = name == "before"
            one = partial(run, errors=errors, before=before, busy=busy)
            these = list(pool.map(one, *zip(*cases, strict=True)))
            found.setdefault(strength, {})[name] = summary(these)
            every[name] += these
    return {**found, "all": {name: summary(all_) for name, all_ in every.items()}}


def _memory() -> str | None:
    """A folder in memory, if the system has one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _kernel(text: str) -> dict[str, Any]:
    """The simulated kernel in a text."""
    found = re.search(r"# (\{.*\})", text)
    assert found is not None, text
    return dict(json.loads(found[1]))


def _values(asked: str) -> list[tuple[str, float]]:
    """Two measured values of a prompt."""
    found = re.findall(r"^([\w.]+) = (-?[\d.]+(?:e[+-]?\d+)?)$", asked, re.MULTILINE)
    return [(name, float(value)) for name, value in found[:2]]


def _word(source: random.Random) -> str:
    return "".join(source.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(8))


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3, help="runs of each problem and strength")
    parser.add_argument("--noisy-runs", type=int, default=1000, help="runs that look for lost winners")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    return whole_or_elsewhere(parser, argv, RESULT, free=("workers",))


def main() -> int:
    """Compare, then look for winners that get lost; write the result."""
    asked = arguments()
    started = time.monotonic()
    with ProcessPoolExecutor(asked.workers) as pool:
        found: dict[str, Any] = {f"busy {busy:g}": compare(asked.seeds, busy, pool) for busy in BUSY}
        print(json.dumps({name: each["all"] for name, each in found.items()}, indent=1), flush=True)
        ends = list(pool.map(noisy, range(10**6, 10**6 + asked.noisy_runs), chunksize=8))
    found["noisy_clock"] = {
        "runs": len(ends),
        "verified": sum(won for won, *_ in ends),
        "winners_not_verified_in_the_budget": sum(m and not g for _, m, g in ends),
        "winners_given_up": sum(given_up for *_, given_up in ends),
    }
    found["seconds"] = round(time.monotonic() - started, 1)
    asked.out.write_text(json.dumps({"provenance": provenance(), "result": found}, indent=1) + "\n")
    print(json.dumps(found["noisy_clock"], indent=1))
    return 1 if found["noisy_clock"]["winners_given_up"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
