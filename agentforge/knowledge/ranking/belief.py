"""Expected value of a strategy: posteriors of its log speedup and of its chance to be verified.

Log speedups of verified results are normal with unknown mean and variance, under a normal-inverse-gamma
prior. The chance that a try ends in a verified result is Beta. With the prior (mu, kappa, alpha, beta) and n
results of mean m and sum of squared deviations S, the posterior is

    kappa' = kappa + n            mu' = (kappa mu + n m) / kappa'
    alpha' = alpha + n / 2        beta' = beta + S / 2 + kappa n (m - mu)^2 / (2 kappa')

(K. Murphy, Conjugate Bayesian analysis of the Gaussian distribution, 2007, section 6). Its results are those
of the context itself. What other contexts say decides the prior: its mean is what `Effects` expects
(effects.py), and their failures count against the chance to pass, by similarity (similarity.py) and up to a
few; passes do not count for it, so that what was tried often is not preferred. Experience from the context
itself wins in the end.

A slower result costs nothing, so the value of a try is P(verified) E[max(0, L)]. L is a result around the
expected mean: a Student t with 2 alpha degrees of freedom, location mu and squared scale beta / alpha. The
uncertainty of the mean adds nothing to this value. The chance of a gain does include it: there the squared
scale is beta (kappa + 1) / (alpha kappa).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scipy.special import stdtr

from agentforge.schema import Strategy, StrategyRecord
from agentforge.store import Experience

from .similarity import Request, freshness

PRIOR_DEVIATION = 0.25
"""Prior standard deviation of log speedup over the best baseline."""
PRIOR_ALPHA = 2.0
"""Prior alpha: makes the prior's variance finite and weak."""
PRIOR_VERIFIED, PRIOR_FAILED = 2.0, 1.0
"""Prior pseudo-counts of the chance that a try ends in a verified result."""


MOST_FOREIGN = 8.0
"""Tries that those of other contexts weigh together, at most, times their greatest similarity."""
CLAIMS = 0.25
"""Results that all claims of other databases weigh together, at most; each weighs a tenth of a result."""
NEAR = 0.2
"""Least similarity of a context whose claims count."""


@dataclass(frozen=True)
class Posterior:
    """Normal-inverse-gamma posterior of log speedup, and Beta posterior of being verified."""

    mu: float
    kappa: float
    alpha: float
    beta: float
    verified: float = PRIOR_VERIFIED
    failed: float = PRIOR_FAILED

    def updated(self, record: Experience, weight: float = 1.0) -> Posterior:
        """Add a record's results, each counted `weight` times.

        A passed solution that was never verified and looked slow or suspicious counts as a try without a
        verified result.
        """
        tries_failed = self.failed + weight * (record.failures + record.discouraging)
        n = weight * record.n
        if n == 0:
            return replace(self, failed=tries_failed)
        squares = weight * max(0, record.n - 1) * record.var_log_speedup
        kappa = self.kappa + n
        distance = record.mean_log_speedup - self.mu
        return Posterior(
            mu=self.mu + n * distance / kappa,
            kappa=kappa,
            alpha=self.alpha + n / 2,
            beta=self.beta + squares / 2 + self.kappa * n * distance**2 / (2 * kappa),
            verified=self.verified + n,
            failed=tries_failed,
        )

    @property
    def p_verified(self) -> float:
        """Chance that a try ends in a verified result."""
        return self.verified / (self.verified + self.failed)

    @property
    def p_gain(self) -> float:
        """Chance that a try ends in a verified speedup above 1."""
        scale = math.sqrt(self.beta * (self.kappa + 1) / (self.alpha * self.kappa))
        return self.p_verified * float(stdtr(2 * self.alpha, self.mu / scale))

    @property
    def value(self) -> float:
        """Expected gain of a try in log speedup: P(verified) E[max(0, L)].

        For a Student t with v degrees of freedom, location mu, scale s and z = mu / s, E[max(0, L)] =
        mu F_v(z) + s f_v(z) (v + z^2) / (v - 1).
        """
        v, scale = 2 * self.alpha, math.sqrt(self.beta / self.alpha)
        z = self.mu / scale
        gain = self.mu * float(stdtr(v, z)) + scale * _t_density(v, z) * (v + z * z) / (v - 1)
        return self.p_verified * max(0.0, gain)


def _t_density(v: float, z: float) -> float:
    log = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - 0.5 * math.log(v * math.pi)
    return math.exp(log - (v + 1) / 2 * math.log1p(z * z / v))


def prior(strategy: Strategy) -> Posterior:
    """Posterior from the card alone."""
    return Posterior(
        mu=strategy.prior_log_speedup,
        kappa=max(strategy.prior_weight, 1e-3),
        alpha=PRIOR_ALPHA,
        beta=(PRIOR_ALPHA - 1) * PRIOR_DEVIATION**2,
    )


def with_claims(belief: Posterior, records: Iterable[StrategyRecord], request: Request) -> Posterior:
    """A posterior with what other databases claim of contexts like this one."""
    near = [r for r in records if r.claims and request.alike(r.context) >= NEAR]
    total = sum(r.claims for r in near)
    for record in near:
        said = Experience(
            context=record.context, n=record.claims, mean_log_speedup=record.mean_claimed_log_speedup
        )
        belief = belief.updated(said, min(0.1, CLAIMS / total))
    return belief


def posterior(
    strategy: Strategy, records: Iterable[Experience], request: Request, expected: float | None = None
) -> Posterior:
    """The prior, updated with the context's own experience.

    Args:
        expected: mean of the prior; None is the card's.
    """
    belief, foreign, own = prior(strategy), list[tuple[float, float, Experience]](), []
    for record in records:
        fresh = freshness(record, request.after, request.generator, request.now, request.weights)
        if record.context.hash == request.context.hash:
            own.append((fresh, record))
        elif alike := request.alike(record.context):
            foreign.append((alike, alike * fresh, record))
    passed = sum(weight * (r.n + r.unproven) for _, weight, r in foreign)
    failed = sum(weight * r.failures for _, weight, r in foreign)
    most = MOST_FOREIGN * max((alike for alike, _, _ in foreign), default=0.0)
    scale = min(1.0, most / (passed + failed)) if passed + failed else 0.0
    mean = belief.mu if expected is None else expected
    belief = replace(belief, mu=mean, failed=belief.failed + scale * failed)
    for fresh, record in own:
        belief = belief.updated(record, fresh)
    return belief


def best_alone(
    strategies: Mapping[str, Strategy], records: Mapping[str, Iterable[Experience]], request: Request
) -> str:
    """The strategy with the highest value by the cards and the context's own experience; empty if there is
    none."""
    own = {
        name: [r for r in records.get(name, ()) if r.context.hash == request.context.hash]
        for name in strategies
    }
    values = {name: posterior(strategies[name], own[name], request).value for name in strategies}
    return max(values, key=values.__getitem__, default="")
