"""The ledger: every call is journaled before its answer is used, and paid for once, within a budget."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from agentforge.schema import Budget, LLMCall, MachineError, Usage, UsageError, content_hash
from agentforge.store import Store

from ._base import CallFailed, CannotAfford, LanguageModel, Request, Response, Tokens
from ._endpoint import TOKEN_CHARACTERS
from .prices import Prices

FAILURES_IN_A_ROW = 6
"""Calls to one endpoint that may fail in a row, each after the SDK's own retries, before the run stops."""

OnCall = Callable[[LLMCall], None]


@dataclass(frozen=True)
class Answer:
    """A response with what it cost, whether it was asked for now or in an earlier session of the run."""

    response: Response
    usage: Usage


@dataclass
class _Sum:
    """What the run used, calls in flight at the most that they can cost."""

    dollars: float = 0.0
    tokens: int = 0


class Ledger:
    """All model calls of one run. Thread-safe.

    Args:
        store: where calls are journaled; a call that was answered before is not made again.
        run: identifier of the run, which is in the store.
        budget: `dollars` and `tokens` are kept: a call that could pass them is not made.
        prices: what calls cost.
        on_call: told of each call when it begins and when it ends.
    """

    def __init__(
        self,
        store: Store,
        run: str,
        budget: Budget | None = None,
        prices: Prices | None = None,
        on_call: OnCall | None = None,
    ) -> None:
        self.run = run
        self.budget = budget or Budget()
        self.prices = prices or Prices()
        self._store = store
        self._on_call = on_call
        self._lock = threading.Lock()
        self._used = _Sum()
        self._failures: Counter[str] = Counter()
        for call in store.calls(run):
            self._used.dollars += call.dollars or 0.0
            self._used.tokens += call.tokens_in + call.tokens_out

    @property
    def dollars(self) -> float:
        """Known cost so far, calls in flight at the most that they can cost."""
        return self._used.dollars

    def check(self, model: LanguageModel) -> None:
        """Raise `UsageError` where a budget of dollars cannot be kept, the price being unknown."""
        if self.budget.dollars is not None and self.prices.find(model.spec) is None:
            raise UsageError(
                f"the price of {model.spec} is not known, so a budget of dollars cannot be kept: "
                "name it in a price table (-c llm.prices=FILE), or limit --tokens instead of --dollars"
            )

    def ask(self, model: LanguageModel, request: Request, *, role: str, attempt: str = "") -> Answer:
        """The model's answer, from the journal where this attempt has asked the same before.

        Raises:
            CallFailed: no usable answer came.
            CannotAfford: the call could pass the budget.
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
        begun = LLMCall(
            key=key,
            run=self.run,
            attempt=attempt,
            role=role,
            model=model.spec,
            prompt=request.hash,
            status="begun",
            time=datetime.now(UTC),
            **self._reserve(model, request),
        )
        return self._make(model, request, begun)

    def _make(self, model: LanguageModel, request: Request, begun: LLMCall) -> Answer:
        started = time.monotonic()
        self._keep(begun)
        try:
            response = model.complete(request)
        except CallFailed as failure:
            self._settle(begun, model, failure.tokens, started, status="failed", error=str(failure))
            self._count_failure(model, failure)
            raise
        except (UsageError, MachineError) as refusal:  # nothing was computed, nothing is billed
            self._settle(begun, model, Tokens(), started, status="failed", error=str(refusal))
            raise
        # anything else, a kill among them, leaves the call `begun`: what it cost is not known
        self._failures[model.endpoint] = 0
        call = self._settle(
            begun, model, response.tokens, started, status="answered", response=response.model_dump_json()
        )
        return Answer(response, _usage(call))

    def _reserve(self, model: LanguageModel, request: Request) -> dict[str, float | int | None]:
        """Set aside the most that the call can cost.

        Raises:
            CannotAfford: with it the budget could be passed.
        """
        self.check(model)
        tokens_in, tokens_out = -(-request.characters // TOKEN_CHARACTERS), request.max_tokens
        price = self.prices.find(model.spec)
        dollars = price.most(tokens_in, tokens_out) if price else None
        limits = self.budget
        with self._lock:
            total = self._used.dollars + (dollars or 0.0)
            if limits.dollars is not None and total > limits.dollars:
                raise CannotAfford(
                    f"the budget of {limits.dollars:g} dollars could be passed by a call to {model.spec}: "
                    f"{self._used.dollars:.4g} are used, and it can cost {dollars:.4g}"
                )
            if limits.tokens is not None and self._used.tokens + tokens_in + tokens_out > limits.tokens:
                raise CannotAfford(
                    f"the budget of {limits.tokens} tokens could be passed by the next call to {model.spec}: "
                    f"{self._used.tokens} are used, and it can take {tokens_in + tokens_out}"
                )
            self._used.dollars = total
            self._used.tokens += tokens_in + tokens_out
        return {"tokens_in": tokens_in, "tokens_out": tokens_out, "dollars": dollars}

    def _settle(
        self,
        begun: LLMCall,
        model: LanguageModel,
        tokens: Tokens,
        started: float,
        **fields: str,
    ) -> LLMCall:
        """Journal how a call ended, and put its real cost in the place of its reserve."""
        price = self.prices.find(model.spec)
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
        self._failures[model.endpoint] += 1
        if self._failures[model.endpoint] >= FAILURES_IN_A_ROW:
            raise MachineError(
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
