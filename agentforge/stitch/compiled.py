"""torch.compile as the artifact: its modes that the referee confirms, the fastest of them."""

from __future__ import annotations

from agentforge.schema import EvaluationStatus, Level

from .trial import KEPT, Trial, Trials
from .variants import VariantBuilder

_MAX_MODES = 2
"""Modes of torch.compile that are evaluated as artifacts."""
_LEAST_GAIN = 1.02
"""torch.compile is kept if it was at least this much faster than eager."""


def fastest_compiled(trials: Trials, variants: VariantBuilder) -> Trial | None:
    """torch.compile in its fastest mode, if the referee confirms that it is faster than eager.

    Only a full evaluation measures all modes, so there is at least one. Another mode is tried if it was
    faster as a baseline: artifacts and baselines differ a little. If one is wrong for inputs in another
    layout, the default mode is tried for contiguous inputs alone.
    """
    best: Trial | None = None
    kept, tried = "", set[str]()
    while len(tried) < _MAX_MODES:
        gains = trials.compile_gains()
        measured = any(trial.evaluation.level is Level.FULL for trial in trials.made)
        name = max(gains.keys() - tried, key=lambda n: gains[n], default="")
        if (not name or gains[name] <= _LEAST_GAIN) and not measured and not tried:
            name = "compile"
        elif not name or gains[name] <= _LEAST_GAIN * gains.get(kept, 1.0):
            break
        tried.add(name)
        trial = trials.evaluate(variants.compiled(KEPT[name]), Level.FULL)
        if _wrong_in_another_layout(trial):
            return best or _for_contiguous(trials, variants)  # all modes generate code in the same way
        if trial.beats_eager and trial.over_eager > (best.over_eager if best else 0.0):
            best, kept = trial, name
    return best


def _for_contiguous(trials: Trials, variants: VariantBuilder) -> Trial | None:
    """Its default mode for contiguous inputs alone; None if another variant was as fast."""
    gain = trials.compile_gains().get("compile", float("inf"))
    if any(trial.over_eager >= gain for trial in trials.made):
        return None
    trial = trials.evaluate(variants.compiled("compile+contiguous"), Level.FULL)
    return trial if trial.beats_eager else None


def _wrong_in_another_layout(trial: Trial) -> bool:
    """Whether a variant was right until its inputs had another layout or shape."""
    failed = [s.name for s in trial.evaluation.stages if s.status is EvaluationStatus.INCORRECT_NUMERICAL]
    return failed == ["variants"]
