"""The next point of a study that is rebuilt from its stored trials each time (optuna, TPE).

TPE: Bergstra et al., "Algorithms for Hyper-Parameter Optimization", 2011.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib.util import find_spec
from itertools import product
from random import Random
from statistics import fmean

from agentforge.schema import MachineError, Trial, pip_install

Value = int | float | str | bool
Space = Mapping[str, tuple[Value, ...]]
"""The values of each parameter."""

RANDOM_POINTS = 6
"""Trials before the sampler models the rest."""

ASKS = 20
"""Points that the sampler is asked for before chance picks one that was not tried."""

FAILED = -1.0
"""Log speedup of a point without a time, relative to the worst one."""


def check_tuning(trials: int) -> None:
    """Check that tuning is possible, if it is wanted.

    Raises:
        MachineError: optuna is missing.
    """
    if trials and find_spec("optuna") is None:
        raise MachineError(
            f"search.tune needs the package 'optuna': run {pip_install('tune')}, or set search.tune=0"
        )


def next_point(space: Space, trials: Sequence[Trial], seed: str, most: int) -> dict[str, Value] | None:
    """A point that was not tried; None after `most` trials, or if there is none.

    A pure function: the study is optuna's in-memory one, with all trials added, and its sampler is seeded by
    the number of trials. Trials of another space, as those before a card was edited, only count.
    """
    known = [t for t in trials if all(t.parameters.get(name) in values for name, values in space.items())]
    tried = {_key(space, trial.parameters) for trial in known}
    if len(trials) >= most or len(tried) >= math.prod(map(len, space.values())):
        return None
    digest = blake2b(f"{seed}\0{len(trials)}".encode(), digest_size=4).digest()
    chance = Random(int.from_bytes(digest))
    for point in _asked(space, known, chance.getrandbits(31)):
        if _key(space, point) not in tried:
            return point
    left = [values for values in product(*space.values()) if values not in tried]
    return dict(zip(space, chance.choice(left), strict=True)) if left else None


def _asked(space: Space, trials: Sequence[Trial], seed: int) -> Iterator[dict[str, Value]]:
    """What the sampler asks for, again and again: it may ask for what was tried."""
    import optuna  # takes a second

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    orders = {name: _ordered(values) for name, values in space.items()}
    distributions: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.IntDistribution(0, len(values) - 1)
        if orders[name]
        else optuna.distributions.CategoricalDistribution(list(values))
        for name, values in space.items()
    }
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=RANDOM_POINTS)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    gains = [fmean(t.log_speedups) if t.log_speedups else None for t in trials]
    worst = min((gain for gain in gains if gain is not None), default=0.0)
    for trial, gain in zip(trials, gains, strict=True):
        params = {
            name: orders[name].index(trial.parameters[name]) if orders[name] else trial.parameters[name]
            for name in space
        }
        study.add_trial(
            optuna.trial.create_trial(
                params=params,
                distributions=distributions,
                value=worst + FAILED if gain is None else gain,
            )
        )
    for _ in range(ASKS):
        asked = study.ask(distributions).params
        yield {name: order[asked[name]] if order else asked[name] for name, order in orders.items()}


def _ordered(values: Sequence[Value]) -> Sequence[Value]:
    """Numbers in their order, so that the sampler knows which are close; empty for other values."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return sorted(numbers) if len(numbers) == len(values) else []


def _key(space: Space, point: Mapping[str, Value]) -> tuple[Value, ...]:
    return tuple(point[name] for name in space)
