"""Select the variant for the artifact: the fastest end to end, never one that the best baseline beats."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentforge.referee import EvaluationRequest, Evaluator
from agentforge.schema import Evaluation, Level, Move, MoveKind, Target, TargetError, TimeEnded

from .compiled import fastest_compiled, in_fastest_mode, too_slow
from .files import Mode
from .trial import BETWEEN_EAGER, NOISE, Forecast, Trial, Trials, describe, latest, leave_out, outcome
from .variants import Promoted, Variant, VariantBuilder

_MAX_FINALS = 3
"""Full evaluations before the best baseline is kept."""
_WORTH_ADDING = 1.05
"""Speedup of torch.compile from which on kernels under it are tried before those alone are proven."""


@dataclass(frozen=True)
class Selection:
    """The selected variant with its trial (if it was evaluated) and all trials."""

    variant: Variant
    trial: Trial | None
    trials: tuple[Trial, ...]
    reason: str
    """Why this variant was selected, in one sentence."""
    dropped: Mapping[MoveKind, str] = field(default_factory=dict)
    """Why each move of the plan that the variant lacks was dropped."""
    probed: Evaluation | None = None
    """The variant on the target's probes; None if there are none."""
    cut_short: bool = False
    """Whether the time ended, or the whole model could not be judged, before all was tried."""
    unjudged: bool = False
    """Whether it was the latter, and not for lack of memory: the same would happen again."""


class Selector:
    """Evaluates variants and selects one.

    Args:
        seconds: wall time after which no new variant is tried; the final evaluation comes on top.
        end: monotonic time at which no evaluation goes on; None for no limit.
        waits: True if the GPU waits for the host long enough to try a CUDA graph.
        packed: True if matmuls take enough of the time to try packed weights.
        alone: True if one operator is the whole model: then its kernel is the only variant.
        compiled: modes of torch.compile that may become the artifact, as baselines are named, cheapest first.
            Without one, the fastest variant that beats eager is kept, else eager.
        moves: that the plan proposes.
        sol_s: speed-of-light seconds of one forward; None if they are not known.
    """

    def __init__(
        self,
        target: Target,
        variants: VariantBuilder,
        kernels: Mapping[str, Promoted],
        referee: Evaluator,
        *,
        seconds: float,
        end: float | None = None,
        waits: bool = False,
        streams: bool = False,
        packed: bool = False,
        alone: bool = False,
        compiled: Sequence[str] = ("compile",),
        moves: Sequence[Move] = (),
        sol_s: float | None = None,
        progress: Callable[[str], None] | None = None,
        forecast: Forecast | None = None,
    ) -> None:
        self._alone, self._compiled = alone, compiled
        self._waits, self._streams = waits, streams
        self._packed = packed and not target.shapes
        self._moves = [move.kind for move in moves if not target.shapes]
        why = "no variant with it was judged" if self._moves else "moves are not made for a range of shapes"
        self._dropped = dict.fromkeys([move.kind for move in moves], why)
        self._target = target
        self._variants = variants
        self._kernels = kernels
        self._referee = referee
        self._deadline = time.monotonic() + seconds
        self._end = end
        self._progress = progress or (lambda line: None)
        forecast = forecast or Forecast()
        forecast.quick, forecast.until = self._most_quick(), self._deadline
        self._trials = Trials(target, kernels, referee, self._end, self._progress, sol_s, forecast=forecast)
        self._probed: dict[str, Evaluation] = {}

    def _most_quick(self) -> int:
        """Quick verdicts on all variants but those with a unit less under torch.compile, or a move less."""
        names, moves = len(self._kernels), len(self._moves)
        between = bool(names or self._packed or moves)
        ways = 1 + (self._packed or self._streams)
        if self._alone and names:
            return 0
        tried = ways * (self._waits + between) + 2 * bool(moves)
        return tried + bool(names or moves) + (names if names > 1 else 0) + bool(names and self._packed)

    def run(self) -> Selection:
        """Select the fastest variant that the referee verifies, else the best baseline.

        If the time ends first, or the whole model cannot be captured or judged: the fastest of those that
        were proven to beat eager until then, else eager. Kernels for a range of shapes must have passed on
        the target's probes.
        """
        unjudged = False
        try:
            return self._run()
        except TimeEnded:
            reason = "the time for stitching ended before a verdict; resume the run with more minutes"
        except TargetError as error:
            reason = f"the whole model could not be judged: {error}"
            unjudged = error.lasts
        self._progress(reason)
        proven = [t for t in self._trials.made if t.beats_eager and self._passed_elsewhere(t.variant)]
        best = max(proven, key=lambda t: t.over_eager, default=None)
        kept = best.variant if best else self._variants.eager()
        said = f"{reason}; {kept.label} is kept{self._trials.refused()}"
        return replace(self._selection(kept, best, said), cut_short=True, unjudged=unjudged)

    def _run(self) -> Selection:
        reason = "no kernel was promoted" if not self._kernels else "no kernel could be installed"
        if not any((self._kernels, self._packed, self._moves, self._waits, self._streams, self._compiled)):
            return self._selection(self._variants.eager(), None, f"{reason}; eager is kept")
        finals = 0
        for found in self._explore():
            ties: list[Trial] = []
            for candidate in found:
                if finals == _MAX_FINALS:
                    break
                may_tie = candidate.variant.mode in BETWEEN_EAGER  # which is enough there: see `Trial.wins`
                least = 1.0 + NOISE if any(t.wins for t in ties) else 1.0 - NOISE * may_tie
                if self._trials.predicted(candidate) <= least:
                    reason = "no variant made the whole model faster than the best baseline"
                    continue
                finals += 1
                final = in_fastest_mode(self._trials, self._variants, self._final(candidate), self._deadline)
                if final.beats_best:
                    return self._won(final)
                ties += [final] if final.ties else []
                reason = "the quick speedup was not confirmed by the full evaluation"
            ties.sort(key=lambda t: -t.score)
            if tie := next((t for t in ties if t.wins), None):
                return self._won(ties[0] if ties[0].score > tie.score * (1 + NOISE) else tie)
            if finals == _MAX_FINALS:
                break
        return self._baseline(reason)

    def _final(self, candidate: Trial) -> Trial:
        """The full verdict; without units for ranges of shapes if those fail on the target's probes."""
        quick = candidate.evaluation.level is not Level.FULL
        final = self._trials.evaluate(candidate.variant, Level.FULL) if quick else candidate
        if not final.wins or self._right_elsewhere(final.variant):
            return final
        self._variants.ranges = False
        exact = self._variants.with_kernels(final.variant.kernels, final.variant.mode)
        return self._trials.evaluate(exact, Level.FULL) if exact else final

    def _won(self, final: Trial) -> Selection:
        return self._selection(final.variant, final, f"{final.variant.label} won end to end")

    def _explore(self) -> Iterator[list[Trial]]:
        """Yield quick evaluations that are compared with each other, cheapest first.

        Order: a CUDA graph (if the GPU waits for the host), all kernels between eager operators, the same
        under torch.compile (which compiles in each candidate process), smaller sets of kernels, packed
        weights alone. After the time for new variants, one that wins is enough. If torch.compile may add to
        kernels, the two ways are compared before one is proven.
        """
        names = list(self._kernels)
        if self._alone and names:
            yield list(filter(None, [self._try(names, "kernels", Level.FULL)]))
            return
        if self._waits:
            yield self._in_a_graph(names)
        if names or self._packed or self._moves:
            smaller = [[n for n in names if n != out] for out in names]
            self._variants.prepare([names, *smaller], packed=self._packed, moves=self._moves)
        trials, waiting = list[Trial](), list[Trial]()
        for mode in _MODES:
            if trials and time.monotonic() > self._deadline:
                if not waiting and any(t.score > 1.0 for t in trials):
                    break
                if not any(t.over_eager > 1.0 - NOISE for t in trials):
                    break  # what loses to eager adds nothing to torch.compile, which may compile for minutes
            found = self._with_alternative(names, mode)
            found = self._with_moves(names, found) if mode == "kernels" else self._unit_by_unit(found)
            trials += found
            gains = [self._trials.over_eager(first[0]) for first in (waiting, found) if first]
            faster = len(gains) == 2 and gains[1] > gains[0]
            waiting = [*found, *waiting] if faster else [*waiting, *found]
            if mode == "kernels" and self._compiler_may_add(found):
                continue
            yield waiting
            waiting = []
        yield waiting
        best = next((t for t in trials if t.variant.mode in BETWEEN_EAGER and t.variant.kernels), None)
        if best is not None and len(names) > 1:
            yield sorted(self._drop_one(best, names), key=lambda trial: -trial.score)
        if names and self._packed and (alone := self._try((), "kernels+packed")):
            yield [alone]

    def _compiler_may_add(self, found: Sequence[Trial]) -> bool:
        """Whether kernels and torch.compile would be faster than what was found, if their gains multiply."""
        plain = next((t for t in found if t.variant.mode == "kernels" and t.variant.kernels), None)
        gain = max(self._trials.compile_gains().values(), default=1.0)
        if plain is None or gain < _WORTH_ADDING:
            return False
        return plain.over_eager * gain > max(t.over_eager for t in found) * (1 + NOISE)

    def _in_a_graph(self, names: Sequence[str]) -> list[Trial]:
        """Evaluate the model as one CUDA graph, with kernels; if that is not the fastest, also without some.

        A kernel may be faster on its own only because it is launched once, which a graph saves too.

        Returns:
            The two fastest, the fastest first.
        """
        found = self._with_alternative(names, "kernels+graph")
        if not found or not names or found[0].score > 1 + NOISE:
            return found
        mode = found[0].variant.mode
        fewer = self._drop_one(found[0], names) if len(names) > 1 else []
        alone = self._try((), mode)
        return sorted([*found, *fewer, *([alone] if alone else [])], key=lambda trial: -trial.score)[:2]

    def _with_alternative(self, names: Collection[str], mode: Mode) -> list[Trial]:
        """Evaluate a variant, and the same with streams or packed weights; better one first."""
        way = self._alternative(mode)
        plain, other = self._try(names, mode), self._try(names, way) if way else None
        faster = plain and other and other.score > plain.score * (1 + NOISE)
        return [trial for trial in ((other, plain) if faster else (plain, other)) if trial]

    def _unit_by_unit(self, found: list[Trial]) -> list[Trial]:
        """Leave one unit after the other out of torch.compile, as long as the model gets faster.

        Returns:
            The fastest, then what was found.
        """
        if not found:
            return found

        def try_without(best: Trial, unit: str) -> Trial | None:
            now = best.variant
            variant = self._variants.with_kernels(now.kernels, now.mode, eager=(*now.eager, unit))
            return self._trials.evaluate(variant, Level.QUICK) if variant else None

        best = found[0]
        for one in leave_out(best, best.variant.compiled, lambda v: v.compiled, try_without, self._deadline):
            best = one.trial if one.faster else best
        return [best, *(trial for trial in found if trial is not best)]

    def _with_moves(self, names: Collection[str], found: list[Trial]) -> list[Trial]:
        """Add the plan's moves to the better one, with and without kernels, and drop those that do not pay.

        Returns:
            The fastest with moves, and what was found without; better one first.
        """
        if not self._moves:
            return found
        mode: Mode = found[0].variant.mode if found else "kernels"
        around = self._variants.with_kernels(names, mode, self._moves)
        alone = self._variants.with_kernels((), mode, self._moves)
        places = alone.moves if alone else {}
        for kind in self._moves:
            self._dropped[kind] = f"it {'was not taken' if kind in places else 'finds no place in the model'}"
        # Kernels take places from moves; if they take none, the moves alone need no verdict.
        apart = names and alone and (around is None or around.moves != alone.moves)
        tried = [self._trials.evaluate(v, Level.QUICK) for v in (around, alone if apart else None) if v]
        if not tried:
            return found
        best = max(tried, key=lambda trial: trial.score)
        kinds = list(best.variant.moves)
        if len(kinds) > 1:
            without_one = [[k for k in kinds if k is not kind] for kind in kinds]
            self._variants.prepare_moves(best.variant.kernels, mode, without_one)

        def try_without(best: Trial, kind: MoveKind) -> Trial | None:
            rest = [k for k in best.variant.moves if k is not kind]
            return self._try(best.variant.kernels, mode, moves=rest)

        for kind, before, trial, faster in leave_out(
            best, kinds, lambda v: v.moves, try_without, self._deadline
        ):
            if faster:
                said = f"{trial.score:.2f}x" if before.score else "right"
                self._dropped[kind] = f"the quick verdict is {said} without it and {outcome(before)} with it"
                best = trial
        gain, without = (best.score, found[0].score) if found else (best.over_eager, 1.0)  # without: eager
        if gain <= without * (1 + NOISE / 2):
            said = f"{gain:.2f}x" if gain else describe(best)
            for kind in best.variant.moves:
                self._dropped[kind] = f"the quick verdict is {said} with moves and {without:.2f}x without"
            return [*found, best]
        return [best, *found]

    def _alternative(self, mode: Mode) -> Mode | None:
        if self._packed:
            return "kernels+packed" if mode == "kernels" else None
        # If the GPU waits for the host, more streams add host work, except inside a graph.
        if self._streams and (mode == "kernels+graph" or not self._waits):
            return _STREAMED.get(mode)
        return None

    def _drop_one(self, best: Trial, names: Sequence[str]) -> list[Trial]:
        """Drop one kernel at a time, least promising first, as long as the rest gets faster."""

        def try_without(best: Trial, name: str) -> Trial | None:
            now = best.variant
            return self._try(now.kernels - {name}, now.mode, moves=list(now.moves))

        cheapest = sorted(names, key=lambda n: self._kernels[n].time_s)
        found = leave_out(best, cheapest, lambda v: v.kernels, try_without, self._deadline)
        return [one.trial for one in found]

    def _try(
        self, names: Collection[str], mode: Mode, level: Level = Level.QUICK, moves: Sequence[MoveKind] = ()
    ) -> Trial | None:
        variant = self._variants.with_kernels(names, mode, moves)
        return self._trials.evaluate(variant, level) if variant else None

    def _right_elsewhere(self, variant: Variant) -> bool:
        """Whether the variant passes on the target's probes, or has nothing for them."""
        definition, probes = self._target.definition, self._target.probes
        if not variant.ranged or not probes:
            return True
        evaluation = self._referee.evaluate(
            EvaluationRequest(definition, probes, variant.solution, level=Level.QUICK, deadline=self._end)
        )
        self._probed[variant.solution.hash] = evaluation
        self._progress(f"{variant.label} on {len(probes)} other shapes: {evaluation.status.value}")
        return evaluation.passed

    def _passed_elsewhere(self, variant: Variant) -> bool:
        found = self._probed.get(variant.solution.hash)
        return not variant.ranged or (found is not None and found.passed)

    def _baseline(self, reason: str) -> Selection:
        """Keep torch.compile in its fastest mode if it was measured faster than eager, else eager."""
        modes, trials = self._compiled, self._trials
        if modes and (ours := self._as_fast_as_compiled()):
            why = ", and its verdict does not see torch.compile faster"
            return self._selection(ours.variant, ours, f"{ours.variant.label} won over eager{why}")
        compiled = fastest_compiled(trials, self._variants, modes) if modes else None
        ours = self._as_good_as(compiled)
        if ours is not None:
            why = ", and over torch.compile with the same dispatch" if compiled else trials.refused()
            return self._selection(ours.variant, ours, f"{ours.variant.label} won over eager{why}")
        kept = compiled.variant if compiled else self._variants.eager()
        said = f"{reason}{too_slow(trials)}; {kept.label} is kept{trials.refused()}"
        return self._selection(kept, compiled, said)

    def _as_fast_as_compiled(self) -> Trial | None:
        """A variant without a compiler that beats eager, with a full verdict in which no baseline is faster.

        The artifact of torch.compile is no faster than its baseline, so it needs no verdict.
        """
        last = latest(self._trials.made).values()
        found = [t for t in last if t.beats_eager and t.score >= 1.0 and "compile" not in t.variant.mode]
        fastest = sorted(found, key=lambda t: -t.score)
        measured = (t for t in fastest if t.evaluation.speedup.keys() >= {*self._compiled})
        return next((t for t in measured if self._right_elsewhere(t.variant)), None)

    def _as_good_as(self, compiled: Trial | None) -> Trial | None:
        """A variant without a compiler that beats eager and is as fast as the artifact of torch.compile.

        That artifact pays for the same dispatch as the kernels; the bare baseline does not. If there is none,
        the kernels may be under torch.compile.
        """
        least = compiled.over_eager if compiled else 1.0

        def eligible(mode: Mode) -> bool:
            return "compile" not in mode if compiled else not mode.startswith("compile")

        last = latest(self._trials.made)
        trials = [t for t in last.values() if eligible(t.variant.mode) and t.over_eager > least]
        judged = False
        for trial in sorted(trials, key=lambda t: -t.over_eager):
            quick = trial.evaluation.level is not Level.FULL
            if quick and judged:
                continue  # one more full evaluation is enough
            judged = judged or quick
            final = self._trials.evaluate(trial.variant, Level.FULL) if quick else trial
            if final.beats_eager and final.over_eager >= least and self._right_elsewhere(final.variant):
                return final
        return None

    def _selection(self, variant: Variant, trial: Trial | None, reason: str) -> Selection:
        dropped = {kind: why for kind, why in self._dropped.items() if kind not in variant.moves}
        probed = self._probed.get(variant.solution.hash)
        return Selection(variant, trial, tuple(self._trials.made), reason, dropped, probed)


_MODES: tuple[Mode, ...] = ("kernels", "kernels+compile")
_STREAMED: dict[Mode, Mode] = {"kernels": "kernels+streams", "kernels+graph": "kernels+graph+streams"}
