"""The ledger: journals every call before its answer is used, and pays for it once within a budget."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from agentforge.schema import (
    Budget,
    LLMCall,
    MachineError,
    OutageError,
    UnsupportedTargetError,
    Usage,
    UsageError,
    content_hash,
)
from agentforge.store import Store

from ._base import (
    CallFailed,
    CannotAfford,
    LanguageModel,
    NotRecorded,
    OutOfTime,
    PromptRefused,
    Request,
    Response,
    Tokens,
)
from .prices import Price, Prices
from .providers.endpoint import TOKEN_CHARACTERS

LEAST_TOKENS = 1024
"""Fewest tokens of an answer to which a budget may limit a call; most answers take 50 to 800."""

FAILURES_IN_A_ROW = 6
"""The run stops after this many failed calls in a row to one endpoint, each after the SDK's own retries.

It also stops if an endpoint that works refuses as many prompts without an answer between them."""

OnCall = Callable[[LLMCall], None]


@dataclass(frozen=True)
class Answer:
    """A response and its cost, from this or an earlier session of the run."""

    response: Response
    usage: Usage
    limited: str = field(default="", compare=False)
    """If the budget allowed only a shorter answer than was asked for: a sentence for the user."""


@dataclass
class _Sum:
    """Usage of the run; calls in progress count with their maximal cost."""

    dollars: float = 0.0
    tokens: int = 0
    under_way: int = 0
    """Calls in progress."""


class Ledger:
    """All model calls of one run. Thread-safe.

    Args:
        budget: limits on `dollars` and `tokens`; a call that could exceed them is not made.
        deadline: when the run's calls end at the latest, by `time.monotonic`; the roles keep to it.
    """

    def __init__(
        self,
        store: Store,
        run: str,
        budget: Budget | None = None,
        prices: Prices | None = None,
        on_call: OnCall | None = None,
        deadline: float | None = None,
    ) -> None:
        self.run = run
        self.deadline = deadline
        self.budget = budget or Budget()
        self.prices = prices or Prices()
        self._store = store
        self._on_call = on_call
        self._lock = threading.Condition()
        self._used = _Sum()
        self._failures: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._answered = False
        """Whether the run has an answer."""
        for call in store.calls(run):
            self._used.dollars += call.dollars or 0.0
            self._used.tokens += call.tokens_in + call.tokens_out
            self._answered = self._answered or call.status == "answered"

    @property
    def dollars(self) -> float:
        """Known cost so far, in dollars; calls in progress count with their maximal cost."""
        return self._used.dollars

    def check(self, model: LanguageModel) -> None:
        """Raise `UsageError` if there is a budget in dollars but the price is unknown."""
        if self.budget.dollars is not None:
            self.prices.check(model)

    def ask(self, model: LanguageModel, request: Request, *, role: str, attempt: str = "") -> Answer:
        """The model's answer, from the journal if this attempt asked the same before.

        The call is limited to the tokens that the budget allows, down to `LEAST_TOKENS`. If calls in progress
        have reserved the rest, this one waits for them.

        Raises:
            CallFailed: no usable answer came.
            CannotAfford: the call could exceed the budget, or the model refuses all further prompts.
            OutageError: calls to this model cannot succeed now.
            UnsupportedTargetError: the model refused the prompts of this run from the first one on.
            UsageError, MachineError: calls to this model cannot succeed.
        """
        base = content_hash([self.run, attempt, role, model.spec, request.hash], length=32)
        for number in range(1_000_000):
            key = f"{base}-{number}"
            found = self._store.find_call(key)
            if found is not None and found.status == "answered":
                return Answer(Response.model_validate_json(found.response), _usage(found))
            if found is None:
                break
        tokens_in, tokens_out, dollars = self._reserve(model, request)
        try:
            begun = LLMCall(
                key=key,
                run=self.run,
                attempt=attempt,
                role=role,
                model=model.spec,
                prompt=request.hash,
                status="begun",
                time=datetime.now(UTC),
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                dollars=dollars,
            )
            answer = self._make(model, request.model_copy(update={"max_tokens": tokens_out}), begun)
        finally:
            with self._lock:
                self._used.under_way -= 1
                self._lock.notify_all()
        if tokens_out == request.max_tokens:
            return answer
        limit = f"the rest of the budget allowed {model.spec} an answer of {tokens_out} tokens"
        return replace(answer, limited=f"{limit}, which was too short: raise --dollars or --tokens")

    def _make(self, model: LanguageModel, request: Request, begun: LLMCall) -> Answer:
        started = time.monotonic()
        self._keep(begun)
        try:
            response = model.complete(request)
        except CallFailed as failure:
            call = self._settle(begun, model, failure.tokens, started, status="failed", error=str(failure))
            failure.usage = _usage(call)
            if not isinstance(failure, OutOfTime):
                self._count_failure(model, failure)
            raise
        except (UsageError, MachineError) as refusal:
            # unless it could not be recorded, nothing was computed or billed
            tokens = refusal.tokens if isinstance(refusal, NotRecorded) else Tokens()
            self._settle(begun, model, tokens, started, status="failed", error=str(refusal))
            raise
        # after anything else, for example a kill, the call stays `begun`: its cost is unknown
        self._failures[model.endpoint] = self._refusals[model.endpoint] = 0
        self._answered = True
        call = self._settle(
            begun, model, response.tokens, started, status="answered", response=response.model_dump_json()
        )
        return Answer(response, _usage(call))

    def _reserve(self, model: LanguageModel, request: Request) -> tuple[int, int, float | None]:
        """Reserve the maximal cost of a call: tokens in, tokens out, dollars.

        Raises:
            CannotAfford: the call could exceed the budget.
        """
        self.check(model)
        tokens_in = -(-request.characters // TOKEN_CHARACTERS)
        price = self.prices.of_model(model)
        with self._lock:
            while True:
                tokens_out = self._affordable(price, tokens_in, request.max_tokens)
                if tokens_out >= min(LEAST_TOKENS, request.max_tokens):
                    break
                if not self._used.under_way:
                    raise CannotAfford(self._too_little(model, price, tokens_in, request.max_tokens))
                self._lock.wait()  # a call takes far less than its reserve
            dollars = price.most(tokens_in, tokens_out) if price else None
            self._used.dollars += dollars or 0.0
            self._used.tokens += tokens_in + tokens_out
            self._used.under_way += 1
        return tokens_in, tokens_out, dollars

    def _affordable(self, price: Price | None, tokens_in: int, most: int) -> int:
        """Longest answer, in tokens and at most `most`, that the rest of the budget allows."""
        limits, used = self.budget, self._used
        if limits.tokens is not None:
            most = min(most, limits.tokens - used.tokens - tokens_in)
        if limits.dollars is not None and price is not None and price.output > 0:
            left = limits.dollars - used.dollars - price.most(tokens_in, 0)
            most = min(most, math.floor(left * 1e6 / price.output))
        elif limits.dollars is not None and price is not None:
            most = most if used.dollars + price.most(tokens_in, 0) <= limits.dollars else 0
        return most

    def _too_little(self, model: LanguageModel, price: Price | None, tokens_in: int, most: int) -> str:
        least, limits = min(LEAST_TOKENS, most), self.budget
        tokens = self._used.tokens + tokens_in + least
        if limits.tokens is not None and tokens > limits.tokens:
            return (
                f"a call to {model.spec} can take {tokens_in + least} tokens, and {self._used.tokens} of the "
                f"budget of {limits.tokens} tokens are used: raise --tokens to at least {tokens}"
            )
        cost = price.most(tokens_in, least) if price else 0.0
        return (
            f"a call to {model.spec} can cost {cost:.4f} dollars, and {self._used.dollars:.4f} of the budget "
            f"of {limits.dollars:g} are used: "
            f"raise --dollars to at least {self._used.dollars + cost + 5e-5:.4f}"
        )

    def _settle(
        self,
        begun: LLMCall,
        model: LanguageModel,
        tokens: Tokens,
        started: float,
        **fields: str,
    ) -> LLMCall:
        """Journal how a call ended, and replace its reserve by its real cost."""
        price = self.prices.of_model(model)
        call = LLMCall.model_validate(
            {
                **begun.model_dump(),
                **fields,
                "tokens_in": tokens.input,
                "tokens_cached": tokens.cached,
                "tokens_out": tokens.output,
                "tokens_reasoning": tokens.reasoning,
                "counted": tokens.known,
                "dollars": price.of(tokens) if price else None,
                "seconds": time.monotonic() - started,
            }
        )
        with self._lock:
            self._used.dollars += (call.dollars or 0.0) - (begun.dollars or 0.0)
            self._used.tokens += tokens.input + tokens.output - begun.tokens_in - begun.tokens_out
        self._keep(call)
        return call

    def _keep(self, call: LLMCall) -> None:
        self._store.save_call(call)
        if self._on_call is not None:
            self._on_call(call)

    def _count_failure(self, model: LanguageModel, failure: CallFailed) -> None:
        if isinstance(failure, PromptRefused):  # the endpoint works
            self._failures[model.endpoint] = 0
            self._refusals[model.endpoint] += 1
            if self._refusals[model.endpoint] >= FAILURES_IN_A_ROW:
                kind = CannotAfford if self._answered else UnsupportedTargetError  # what was won is kept
                raise kind(
                    f"{FAILURES_IN_A_ROW} prompts of this problem do not fit {model.spec}, or it declines "
                    f"them ({failure})"
                ) from failure
            return
        self._failures[model.endpoint] += 1
        if self._failures[model.endpoint] >= FAILURES_IN_A_ROW:
            raise OutageError(
                f"{FAILURES_IN_A_ROW} calls to {model.spec} failed in a row ({failure}): "
                "resume the run when it works again"
            ) from failure


def _usage(call: LLMCall) -> Usage:
    return Usage(
        seconds=call.seconds,
        tokens_in=call.tokens_in,
        tokens_out=call.tokens_out,
        tokens_cached=call.tokens_cached,
        dollars=call.dollars,
    )
