"""`KnowledgeBase`: all strategies, and what to expect of them in a context."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from agentforge.referee.timing.statistics import geometric_mean
from agentforge.schema import (
    Advice,
    Context,
    Evaluation,
    FrozenModel,
    Lesson,
    Precedent,
    Solution,
    Strategy,
    UsageError,
    content_hash,
)
from agentforge.store import Store, VerifiedSolution, evaluation_id

from .cards import Card, languages_of_cards, load_folder
from .entries import lesson_text, outcome_of, strategy_without_card
from .generator import generator_hash
from .ranking import Effects, Posterior, Request, best_alone, nearest, posterior, similarity, with_claims

APART = math.log(1.2)
"""Log speedups that differ by less count as equally fast where solutions are compared."""

UNNAMED = "unnamed"
"""Strategy of an attempt whose author names no technique: outcomes of different ones say nothing together."""

LEAST_ALIKE = 0.5
"""Similarity of another problem whose solutions are worth showing."""


class KnowledgeStats(FrozenModel):
    """The knowledge base in numbers."""

    strategies: int
    """Those of cards and of runs here, without claimed ones."""
    contexts: int
    """Distinct contexts with experience."""
    outcomes: int
    verified: int
    """Outcomes with a verified speedup, above or below 1."""
    faster: int
    """Verified outcomes above 1."""
    failures: int
    """Outcomes that did not pass, including cheating."""
    cheating: int
    claimed: int
    """Outcomes of other databases; only `outcomes` counts them too."""
    unproven: int
    """Solutions that passed and were never verified."""
    geometric_mean_speedup: float | None
    """Mean log speedup of the verified outcomes over the best baseline."""


class PairGain(FrozenModel):
    """What a strategy gained after another one, in all contexts of this database."""

    after: str
    """Strategy that it was built on."""
    n: int
    """Verified results."""
    gain: float
    """Their geometric mean over what they were built on."""


class KnowledgeBase:
    """Strategies from playbook cards and from runs, with their records. Thread-safe like `Store`.

    Args:
        playbooks: folders of cards; a later card replaces one with its identifier.
        clock: tells the time that experience has aged to.
    """

    def __init__(
        self,
        store: Store,
        playbooks: Sequence[Path],
        *,
        clock: Callable[[], datetime] = partial(datetime.now, UTC),
    ) -> None:
        self._store = store
        self._playbooks = playbooks
        self._clock = clock
        self._precedents: dict[tuple[str, Context, str, datetime], tuple[Precedent, ...]] = {}

    @cached_property
    def cards(self) -> dict[str, Card]:
        """The playbook's cards of all kinds, by identifier.

        Raises:
            UsageError: a card is invalid.
        """
        return {name: card for folder in self._playbooks for name, card in load_folder(folder).items()}

    @cached_property
    def _cards(self) -> dict[str, Strategy]:
        return {name: card for name, card in self.cards.items() if isinstance(card, Strategy)}

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """The cards that are no techniques, in the order of their identifiers."""
        return tuple(card for _, card in sorted(self.cards.items()) if isinstance(card, Advice))

    def _known(self) -> dict[str, Strategy]:
        return {**{s.id: s for s in self._store.stored_strategies()}, **self._cards}

    def strategies(self) -> tuple[Strategy, ...]:
        """All strategies with all their records, by identifier.

        Raises:
            UsageError: a card is invalid.
        """
        records, lessons = self._store.strategy_records(), self._store.lessons(claims=False)
        known = self._known()
        return tuple(
            known[name].model_copy(
                update={"records": records.get(name, ()), "lessons": lessons.get(name, ())}
            )
            for name in sorted(known)
        )

    def get(self, strategy_id: str) -> Strategy:
        """One strategy with all its records.

        Raises:
            UsageError: no such strategy.
        """
        strategy = self._known().get(strategy_id)
        if strategy is None:
            raise UsageError(f"there is no strategy {strategy_id!r}: `agentforge kb list` shows them all")
        records = self._store.strategy_records(strategies=[strategy_id]).get(strategy_id, ())
        lessons = self._store.lessons(claims=False).get(strategy_id, ())
        return strategy.model_copy(update={"records": records, "lessons": lessons})

    def pair_gains(self, strategy_id: str) -> tuple[PairGain, ...]:
        """What a strategy gained after others, the highest gain first."""
        found: dict[str, list[tuple[int, float]]] = {}
        for one in self._store.experience(strategies=[strategy_id]).get(strategy_id, ()):
            if one.after and one.n:
                found.setdefault(one.after, []).append((one.n, one.mean_log_speedup))
        totals = {after: sum(n for n, _ in some) for after, some in found.items()}
        pairs = (
            PairGain(after=after, n=totals[after], gain=math.exp(sum(n * x for n, x in some) / totals[after]))
            for after, some in found.items()
        )
        return tuple(sorted(pairs, key=lambda pair: (-pair.gain, pair.after)))

    def retrieve(
        self,
        context: Context,
        languages: Sequence[str] = ("cpp",),
        device: str = "cpu",
        *,
        after: str = "",
    ) -> tuple[Strategy, ...]:
        """Applicable strategies, highest expected value first, with their records of this operator class.

        Args:
            after: strategy of the attempt to build on; empty for a start from the definition.
        """
        return tuple(s for s, _ in self.ranked(context, languages, device, after=after))

    def ranked(
        self,
        context: Context,
        languages: Sequence[str] = ("cpp",),
        device: str = "cpu",
        *,
        after: str = "",
    ) -> tuple[tuple[Strategy, Posterior], ...]:
        """Like `retrieve`, with the posterior of each strategy. Only the nearest contexts are asked.

        The first one is what cards and own results say, unless other contexts surely know better.
        """
        request = Request(context, after, generator_hash(), self._clock())
        every, known = sorted(self._known().items()), self._store.contexts()
        read = languages_of_cards(languages)
        asked = {n: s for n, s in every if not s.claimed and _applies(s, context, read, device)}
        near = nearest(known.tried, request)
        experience = self._store.experience(near, asked)
        claims = self._store.strategy_records(nearest(known.claimed, request), asked)
        same = [one for one in near if one.op_type == context.op_type]
        records = self._store.strategy_records(same, asked)
        lessons = self._store.lessons(context.op_type, claims=False)
        effects = Effects(asked, experience, request)
        scored = list[tuple[float, Strategy, Posterior]]()
        for name, strategy in asked.items():
            belief = posterior(strategy, experience.get(name, ()), request, effects.expected(name))
            own = sorted(records.get(name, ()), key=lambda r: (-request.alike(r.context), -r.n))
            told = {"records": tuple(own), "lessons": lessons.get(name, ()), "expected": effects.values(name)}
            claimed = with_claims(belief, claims.get(name, ()), request).value
            scored.append((claimed, strategy.model_copy(update=told), belief))
        scored.sort(key=lambda entry: -entry[2].value)  # stable: equal ones stay in the order of names
        first = best_alone(asked, experience, request)
        if scored and not effects.surely_better(scored[0][1].id, first):
            scored.sort(key=lambda entry: entry[1].id != first)
        # the first rank is decided without claims
        ordered = [*scored[:1], *sorted(scored[1:], key=lambda entry: -entry[0])]
        return tuple((strategy, belief) for _, strategy, belief in ordered)

    def precedents(
        self, definition: str, context: Context, language: str, before: datetime
    ) -> tuple[Precedent, ...]:
        """Solutions that earlier runs wrote for this problem on such a machine, and that were verified here.

        If they are all about as fast, those for the most similar problem of the operator class that are not.

        Args:
            definition: hash of the problem's definition.
            before: beginning of the run that asks; later outcomes do not change its prompts.
        """
        key = definition, context, language, before
        if key not in self._precedents:
            self._precedents[key] = self._find_precedents(*key)
        return self._precedents[key]

    def _find_precedents(
        self, definition: str, context: Context, language: str, before: datetime
    ) -> tuple[Precedent, ...]:
        problems = defaultdict[str, list[VerifiedSolution]](list)
        likeness = {definition: 2.0}
        for one in self._store.verified_solutions(context.op_type, before):
            alike = similarity(one.context, context)
            if one.context.architecture == context.architecture and alike >= LEAST_ALIKE:
                problems[one.definition].append(one)
                likeness[one.definition] = max(alike, likeness.get(one.definition, 0.0))
        for name in sorted(problems, key=lambda name: (-likeness[name], name)):
            if not _apart(one.log_speedup for one in problems[name]):
                continue  # none of its solutions is read
            found = [
                Precedent(solution=solution, strategy=one.strategy, log_speedup=one.log_speedup)
                for one in problems[name]
                for solution in [self._store.get_solution(one.solution)]
                if solution.spec.language == language and solution.author != "inductor"
            ]
            if _apart(one.log_speedup for one in found):
                return tuple(found)
        return ()

    def expected_gains(
        self, context: Context, languages: Sequence[str] = ("cpp",), device: str = "cpu"
    ) -> dict[str, float]:
        """Expected log speedup of one try of each applicable strategy, by identifier."""
        return {strategy.id: belief.value for strategy, belief in self.ranked(context, languages, device)}

    def success_probability(
        self, context: Context, languages: Sequence[str] = ("cpp",), device: str = "cpu"
    ) -> float:
        """Chance, 0 to 1, that one try of the best strategy ends in a verified gain; 0 without a strategy."""
        ranked = self.ranked(context, languages, device)
        return ranked[0][1].p_gain if ranked else 0.0

    def record(
        self,
        strategy_id: str,
        context: Context,
        solution: Solution,
        evaluation: Evaluation,
        parameters: Mapping[str, int | float | str | bool] | None = None,
        run: str | None = None,
        *,
        parent: tuple[str, Evaluation] | None = None,
    ) -> None:
        """Record what an evaluation says about a strategy. It counts once, also if another run takes it;
        one that was taken for another source with the same machine code counts in its own run alone.

        A `verified` evaluation counts with its speedup, one that did not pass as a failure, and one that says
        nothing about the solution, or is of `UNNAMED`, is not kept. One that passed unverified counts as
        neither, and is dropped once the same solution is verified.

        Args:
            strategy_id: of a card, or a slug, which becomes a strategy that applies wherever it was tried.
            parent: strategy and evaluation of the attempt that it was built on. If that passed and has
                another strategy, the outcome's credit is the gain over it.
        """
        repeated = evaluation.reused and not evaluation.copy_of
        if strategy_id == UNNAMED or evaluation.status.undecided or repeated:
            return
        if strategy_id not in self._cards:
            self._store.save_strategy(strategy_without_card(strategy_id, context, solution))
        chosen = parameters if parameters is not None else solution.parameters
        outcome = outcome_of(strategy_id, context, solution, evaluation, chosen, run, parent=parent)
        self._store.record_outcomes([outcome])

    def learn(
        self,
        strategy_id: str,
        context: Context,
        evaluation: Evaluation,
        text: str,
        *,
        author: str,
        expected_speedup: float | None = None,
        run: str | None = None,
    ) -> Lesson:
        """Record a lesson in words with its strategy. Idempotent.

        Args:
            strategy_id: of a card, or of a strategy with an outcome.
            evaluation: identifier of the stored, verified evaluation that supports it.
            text: at most 600 characters.

        Raises:
            UsageError: the evaluation is not verified or not stored, or the strategy does not exist.
        """
        identifier = evaluation_id(evaluation)
        if self._store.get_evaluation(identifier).verified is False or evaluation.performance is None:
            raise UsageError(
                "a lesson needs a verified evaluation: evaluate the solution at level full first"
            )
        if strategy_id not in self._known():
            raise UsageError(f"there is no strategy {strategy_id!r}: `agentforge kb list` shows them all")
        words = lesson_text(text)
        if not words:
            raise UsageError("the lesson is empty: write one sentence that is true beyond this attempt")
        lesson = Lesson(
            id=content_hash([strategy_id, identifier, words], length=24),
            strategy=strategy_id,
            context=context,
            evaluation=identifier,
            text=words,
            expected_speedup=expected_speedup,
            speedup=evaluation.performance.speedup_over_best.point,
            author=author,
            run=run,
            time=evaluation.timestamp,
        )
        self._store.save_lesson(lesson)
        return lesson

    def stats(self) -> KnowledgeStats:
        """The knowledge base in numbers."""
        records = [r for found in self._store.strategy_records().values() for r in found]
        totals = self._store.outcome_totals()
        verified = sum(r.n for r in records)
        means = [math.exp(r.mean_log_speedup) for r in records]
        return KnowledgeStats(
            strategies=sum(not strategy.claimed for strategy in self._known().values()),
            contexts=len({r.context.hash for r in records if r.n + r.failures + r.unproven}),
            outcomes=totals.outcomes,
            verified=verified,
            faster=totals.faster,
            failures=sum(r.failures for r in records),
            cheating=totals.cheating,
            claimed=totals.claimed,
            unproven=sum(r.unproven for r in records),
            geometric_mean_speedup=geometric_mean(means, [r.n for r in records]) if verified else None,
        )


def _apart(logs: Iterable[float]) -> bool:
    """Whether solutions with these log speedups differ in speed."""
    found = [*logs]
    return bool(found) and max(found) - min(found) >= APART


def _applies(strategy: Strategy, context: Context, languages: frozenset[str], device: str) -> bool:
    return (
        (not strategy.op_types or context.op_type in strategy.op_types)
        and (not strategy.bounds or not context.bound or context.bound in strategy.bounds)
        and (not strategy.devices or device in strategy.devices)
        and (not strategy.languages or not languages.isdisjoint(strategy.languages))
    )
