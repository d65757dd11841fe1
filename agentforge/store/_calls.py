"""The ledger of language-model calls."""

from __future__ import annotations

from sqlalchemy import select

from agentforge.schema import LLMCall

from ._engine import Database
from .tables import CallRow


class Calls:
    """Language-model calls by key; only a key's newest state is kept."""

    _db: Database

    def save_call(self, call: LLMCall) -> None:
        """Keep a call in the place of its earlier state; durable when this returns."""
        with self._db.write() as session:
            row = session.get(CallRow, call.key)
            if row is None:
                row = CallRow(key=call.key, run=call.run, role=call.role, time=call.time)
                session.add(row)
            ended = call.status != "begun"  # until then its figures are a reserve
            row.status = call.status
            row.tokens = call.tokens_in + call.tokens_out if ended else 0
            row.dollars = call.dollars if ended else None
            row.body = call.model_dump_json()

    def find_call(self, key: str) -> LLMCall | None:
        """The call of this key; None if it was never begun."""
        with self._db.read() as session:
            row = session.get(CallRow, key)
            return None if row is None else LLMCall.model_validate_json(row.body)

    def calls(self, run_id: str, role: str | None = None) -> tuple[LLMCall, ...]:
        """The run's calls, of all roles or of one, in the order in which they were begun."""
        query = select(CallRow.body).where(CallRow.run == run_id).order_by(CallRow.time, CallRow.key)
        if role is not None:
            query = query.where(CallRow.role == role)
        with self._db.read() as session:
            return tuple(LLMCall.model_validate_json(body) for body in session.scalars(query))
