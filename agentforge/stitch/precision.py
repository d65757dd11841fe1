"""Lower precision by permission: variants in bfloat16 or int8, tried after the best float32 one is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentforge.isolation.scratch import Scratch
from agentforge.referee import Evaluator
from agentforge.schema import Definition, Level, MachineError, Permission, Target, TargetError, TimeEnded

from .artifact import build_into
from .files import Mode
from .metric import metric_value
from .select import Selection
from .trial import Forecast, Trial, Trials, describe, latest
from .variants import Promoted, Variant, VariantBuilder

_FACTOR = 4.0
"""Allowed multiple of the reference's own error in the allowed precision."""
_WORTH_IT = 1.02
"""Speedup over the float32 selection that lower precision must bring."""
_MODES: dict[str, Mode] = {"bf16": "kernels+bf16", "int8": "kernels+int8"}


def permitted(definition: Definition, permission: Permission) -> Definition:
    """The definition that lower precision is judged by; no verdict on it has the float32 one's hash."""
    tolerance = definition.tolerance.model_copy(update={"factor": _FACTOR})
    return definition.model_copy(update={"precision": permission.precision, "tolerance": tolerance})


@dataclass
class LowerPrecision:
    """Tries variants in lower precision beside a selection in float32.

    Args:
        cache: folder of built kernels.
        end: monotonic time at which no evaluation goes on; None for no limit.
        original: the metric of the original model; None if it is not known.
    """

    permission: Permission
    target: Target
    variants: VariantBuilder
    kernels: Mapping[str, Promoted]
    referee: Evaluator
    cache: Path
    end: float | None
    progress: Callable[[str], None]
    original: float | None = None
    forecast: Forecast = field(default_factory=Forecast)

    def __post_init__(self) -> None:
        self._trials = Trials(self.target, self.kernels, self.referee, self.end, self.progress)
        self._trials.forecast = self.forecast
        self._values = {} if self.original is None else {"original": self.original}

    def improve(self, base: Selection) -> tuple[Selection, dict[str, Any]]:
        """The faster of `base` and a proven variant in lower precision whose metric is within the bound.

        Returns:
            The selection, whose reason says what became of the permission, and the same for the report.
        """
        cut_short, unjudged = base.cut_short, base.unjudged  # only the former: more time may help
        self.forecast.quick, self.forecast.until = 4, math.inf  # twins too, with kernels and without
        try:
            winner, why = self._best(base)
        except TimeEnded:
            winner, why = None, "the time for stitching ended before it was proven"
            cut_short, unjudged = True, False
        except TargetError as error:
            winner, why = None, f"the model could not be judged: {error}"
            cut_short, unjudged = True, error.lasts and unjudged == cut_short
        said = f"{self.permission.precision} was allowed: {why}"
        trials = (*base.trials, *self._trials.made)
        if winner is None:
            reason = f"{base.reason}; {said}, so float32 is kept"
            selection = replace(base, trials=trials, reason=reason, cut_short=cut_short, unjudged=unjudged)
        else:
            reason = f"{winner.variant.label} won end to end; {said}"
            dropped = dict.fromkeys(base.variant.moves, "lower precision was faster without it")
            dropped = {**base.dropped, **dropped}
            selection = Selection(
                winner.variant, winner, trials, reason, dropped, cut_short=cut_short, unjudged=unjudged
            )
        return selection, {
            **self.permission.model_dump(mode="json"),
            "limit": self.permission.limit,
            "metric_values": self._values,
            "installed": winner is not None,
            "summary": said,
        }

    def _best(self, base: Selection) -> tuple[Trial | None, str]:
        """A variant that won and its metric in words, or None and why the last one that was tried lost."""
        before = base.trial.over_eager if base.trial else 1.0
        sets = dict.fromkeys([base.variant.kernels or frozenset(self.kernels), frozenset[str]()])
        trials = [trial for names in sets if (trial := self._quick(names, base))]
        if not trials:
            return None, "no product is large enough, or its float32 form was not right"
        why = "it was not faster end to end"
        for trial in sorted(trials, key=lambda t: -t.over_eager):
            right = trial.evaluation.passed and not trial.problems
            if right and trial.over_eager <= before * _WORTH_IT:
                continue
            self._values.pop("changed", None)  # of the variant before
            if not right:
                why = (*trial.problems, *trial.evaluation.reasons, describe(trial))[0]
                continue
            final = self._evaluate(trial.variant, Level.FULL)
            if not final.wins or final.over_eager <= before * _WORTH_IT:
                why = "the full evaluation did not confirm that it is right and faster"
                continue
            accepted, why = self._judged_by_metric(final.variant)
            if accepted:
                return final, why
        return None, why

    def _quick(self, names: frozenset[str], base: Selection) -> Trial | None:
        """A quick verdict in lower precision; None without a float32 twin that is right.

        The twin is the same code under the strict tolerance, which sees mistakes that the wide one hides.
        """
        strict = self.variants.with_kernels(names, "kernels+packed")
        variant = self.variants.with_kernels(names, _MODES[self.permission.precision])
        if strict is None or variant is None:
            return None
        twin = latest(base.trials).get(strict.solution.hash) or self._evaluate(strict, Level.QUICK)
        if not twin.evaluation.passed or twin.problems:
            return None
        judged = permitted(self.target.definition, self.permission).hash
        solution = variant.solution.model_copy(update={"definition": judged})
        return self._evaluate(replace(variant, solution=solution), Level.QUICK)

    def _evaluate(self, variant: Variant, level: Level) -> Trial:
        definition = self.target.definition
        if variant.solution.definition != definition.hash:
            definition = permitted(definition, self.permission)
        return self._trials.evaluate(variant, level, definition)

    def _judged_by_metric(self, variant: Variant) -> tuple[bool, str]:
        """Whether a proven variant's metric is within the bound, and the metric or its error in words."""
        permission, scratch = self.permission, Scratch("metric")
        try:
            build_into(scratch.path, variant.solution, self.target.device, self.cache)
            for whose, folder in (("original", None), ("changed", scratch.path)):
                if whose not in self._values or folder:
                    value = metric_value(
                        self.target, permission, folder, end=self.end, progress=self.progress
                    )
                    self._values[whose] = value
        except (TargetError, MachineError) as error:
            return False, str(error)
        finally:
            scratch.close()
        original, changed = self._values["original"], self._values["changed"]
        said = f"metric {permission.function} {original:.6g} -> {changed:.6g} (bound {permission.limit})"
        self.progress(said)
        accepted = permission.accepts(original, changed)
        return accepted, said if accepted else f"{said}; that is outside the bound"
