"""torch.compile as the artifact: its modes that the referee confirms, the fastest of them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from agentforge.schema import EvaluationStatus, Level, TargetError, TimeEnded

from .trial import KEPT, NOISE, Trial, Trials, latest
from .variants import VariantBuilder

_MAX_MODES = 2
"""Modes of torch.compile that are evaluated as artifacts."""
_LEAST_GAIN = 1.02
"""A mode of torch.compile is judged in full if its speedup over eager is larger than this."""


def fastest_compiled(trials: Trials, variants: VariantBuilder, modes: Sequence[str]) -> Trial | None:
    """torch.compile in its fastest mode, if the referee confirms that it is faster than eager.

    Only a full evaluation measures all modes as baselines. If none was made, quick ones come first: they say
    whether a full one is worth its time. Another mode is tried if it was faster as a baseline: artifacts and
    baselines differ a little. If one is wrong for inputs in another layout, the default mode is tried for
    contiguous inputs alone.

    Args:
        modes: of torch.compile that a full evaluation measures, as baselines are named, cheapest first.
    """
    best: Trial | None = None
    kept, tried = "", set[str]()
    measured = any(trial.evaluation.level is Level.FULL for trial in trials.made)
    name = _next_mode(trials, kept, tried) if measured else _promising_mode(trials, variants, modes)
    while name and len(tried) < _MAX_MODES:
        tried.add(name)
        trial = trials.evaluate(variants.compiled(KEPT[name]), Level.FULL)
        if _wrong_in_another_layout(trial):
            return best or _for_contiguous(trials, variants)  # all modes generate code in the same way
        if trial.beats_eager and trial.over_eager > (best.over_eager if best else 0.0):
            best, kept = trial, name
        name = _next_mode(trials, kept, tried)
    return best


def in_fastest_mode(trials: Trials, variants: VariantBuilder, final: Trial, deadline: float) -> Trial:
    """A proven variant, with its units compiled in the fastest baseline's mode if a full verdict says so.

    The try may fail, or the time may end: the variant stays, as it was proven.

    Args:
        deadline: after it (of `time.monotonic`), no try begins.
    """
    gains, now = trials.compile_gains(), final.variant
    way = max(gains, key=lambda name: gains[name], default="")
    if not (now.compiled and final.proven) or gains.get(way, 0.0) <= _LEAST_GAIN * gains.get("compile", 1.0):
        return final
    if time.monotonic() > deadline:
        return final
    least = final.over_eager * (1 + NOISE)
    try:
        variant = variants.with_kernels(now.kernels, now.mode, list(now.moves), now.eager, way)
        if variant is None or trials.over_eager(trials.evaluate(variant, Level.QUICK)) <= least:
            return final
        other = trials.evaluate(variant, Level.FULL)
    except (TimeEnded, TargetError):
        return final
    faster = other.proven and other.over_eager > final.over_eager
    return other if faster and other.beats_best >= final.beats_best else final


def too_slow(trials: Trials) -> str:
    """Why torch.compile got no full evaluation, if quick ones are the reason, as the end of a sentence."""
    made = [trial for trial in trials.made if trial.variant.mode.startswith("compile")]
    passed = all(trial.evaluation.passed for trial in made)
    if not made or not passed or any(trial.evaluation.level is Level.FULL for trial in made):
        return ""
    gains = " and ".join(f"{trial.variant.label} was {trial.over_eager:.2f}x over eager" for trial in made)
    return f"; at level quick {gains}, too little for a full evaluation"


def _next_mode(trials: Trials, kept: str, tried: set[str]) -> str:
    """The fastest other mode as a baseline; empty if it was not clearly faster than the one kept."""
    gains = trials.compile_gains()
    name = max(gains.keys() - tried, key=lambda n: gains[n], default="")
    return name if name and gains[name] > _LEAST_GAIN * gains.get(kept, 1.0) else ""


def _promising_mode(trials: Trials, variants: VariantBuilder, modes: Sequence[str]) -> str:
    """The first mode that quick evaluations see faster than eager; empty if there is none.

    A mode that they did not measure as a baseline is judged as an artifact. If one fails, no other is tried:
    all modes generate code in the same way.
    """
    gains = trials.compile_gains()
    for name in [mode for mode in modes if mode in KEPT] or ["compile"]:
        gain = gains.get(name)
        if gain is None:
            trial = trials.evaluate(variants.compiled(KEPT[name]), Level.QUICK)
            if not trial.evaluation.passed:
                return ""
            gain = trial.over_eager
        if gain > _LEAST_GAIN:
            return name
    return ""


def _for_contiguous(trials: Trials, variants: VariantBuilder) -> Trial | None:
    """Its default mode for contiguous inputs alone; None if another variant was as fast."""
    gain = trials.compile_gains().get("compile", float("inf"))
    others = [t for t in latest(trials.made).values() if not t.variant.mode.startswith("compile")]
    if any(t.over_eager >= gain and (t.beats_eager or t.evaluation.level is not Level.FULL) for t in others):
        return None
    trial = trials.evaluate(variants.compiled("compile+contiguous"), Level.FULL)
    return trial if trial.beats_eager else None


def _wrong_in_another_layout(trial: Trial) -> bool:
    """Whether a variant was right until its inputs had another layout or shape."""
    failed = [s.name for s in trial.evaluation.stages if s.status is EvaluationStatus.INCORRECT_NUMERICAL]
    return failed == ["variants"]
