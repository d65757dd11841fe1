"""What the runs of a campaign's items found and cost: the same few statements for any number of items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select

from agentforge.schema import Evaluation, JudgingCode, NativeVerdict, ReasonCode, Run, StitchResult

from .._engine import Database
from ..knowledge.scope import item_runs
from ..knowledge.summary import parts
from ..tables import CallRow, EvaluationRow, ItemRow, RunRecordRow, RunRow


class Spending(NamedTuple):
    """What calls to language models cost."""

    tokens: int = 0
    """Without those of calls that have no answer yet."""
    dollars: float = 0.0
    """Of the calls whose cost is known."""
    unknown: int = 0
    """Other calls: their price is unknown, or they have no answer, or not yet."""


class Result(NamedTuple):
    """A run with what it found."""

    run: Run
    stitched: StitchResult | None = None
    native: NativeVerdict | None = None
    judged: JudgingCode | None = None
    evaluation: Evaluation | None = None
    """Of the stitched model."""
    weak: Sequence[Evaluation] = ()
    """Those that say of a task, which may be the model's or a region's, that it is weak."""


_RECORDS: dict[str, tuple[str, type[StitchResult | NativeVerdict | JudgingCode]]] = {
    StitchResult.record_name: ("stitched", StitchResult),
    NativeVerdict.record_name: ("native", NativeVerdict),
    JudgingCode.record_name: ("judged", JudgingCode),
}
"""Field of `Result` and class of each record that it has."""


class CampaignResults:
    """Results and costs of all items at once."""

    _db: Database

    def campaign_results(self, name: str) -> dict[str, Result]:
        """The runs that have the results of its items, or work on those without one, by identifier.

        Runs that a user removed are left out.
        """
        result = func.coalesce(ItemRow.result_run, ItemRow.run)
        mine = ItemRow.campaign == name
        runs = select(RunRow.body).join(ItemRow, RunRow.id == result).where(mine)
        records = (
            select(RunRecordRow.run, RunRecordRow.name, RunRecordRow.body)
            .join(ItemRow, RunRecordRow.run == result)
            .where(mine, RunRecordRow.name.in_(_RECORDS))
        )
        doubts = (
            select(EvaluationRow.run, EvaluationRow.body)
            .join(ItemRow, EvaluationRow.run == result)
            .where(mine, EvaluationRow.body.contains(f'"{ReasonCode.WEAK_TASK.value}"'))
        )
        fields, evaluations = defaultdict[str, dict[str, Any]](dict), dict[str, Evaluation]()
        with self._db.read() as session:
            found = [Run.model_validate_json(body) for body in session.scalars(runs)]
            for run, record, body in session.execute(records):
                field, kind = _RECORDS[record]
                fields[run][field] = kind.model_validate_json(body)
            for doubtful, body in session.execute(doubts):
                evaluation = Evaluation.model_validate_json(body)
                if evaluation.because(ReasonCode.WEAK_TASK):  # a candidate may write the word too
                    fields[doubtful or ""].setdefault("weak", []).append(evaluation)
            finals = {f["stitched"].evaluation or "" for f in fields.values() if "stitched" in f}
            for part in parts(sorted(finals)):
                rows = select(EvaluationRow.id, EvaluationRow.body).where(EvaluationRow.id.in_(part))
                for identifier, body in session.execute(rows):
                    evaluations[identifier] = Evaluation.model_validate_json(body)
        for own in fields.values():
            if "stitched" in own:
                own["evaluation"] = evaluations.get(own["stitched"].evaluation or "")
        return {run.id: Result(run, **fields[run.id]) for run in found}

    def item_spending(self, name: str) -> dict[int, Spending]:
        """What all calls of each item's runs cost, by item; an item without calls is left out."""
        with self._db.read() as session:
            runs = item_runs(name).subquery()
            tokens, dollars = func.sum(CallRow.tokens), func.sum(CallRow.dollars)
            query = (
                select(runs.c.id, tokens, dollars, func.count() - func.count(CallRow.dollars))
                .join(CallRow, CallRow.run == runs.c.run)
                .group_by(runs.c.id)
            )
            return {
                item: Spending(int(some or 0), float(known or 0.0), unknown)
                for item, some, known, unknown in session.execute(query)
            }

    def campaign_spending(self, name: str) -> Spending:
        """What all calls of its items' runs cost."""
        spent = self.item_spending(name).values()
        return Spending(
            sum(s.tokens for s in spent), sum(s.dollars for s in spent), sum(s.unknown for s in spent)
        )
