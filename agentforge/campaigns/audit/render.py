"""An audit as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from agentforge.markdown import table

from .audit import Audit, AuditedItem, Outcome

COLUMNS = ("submission", "claimed", "verified", "outcome", "caught by", "detail")


def markdown(audit: Audit) -> str:
    """The audit for a person: counts, which check caught what, then each submission."""
    return "\n".join(_markdown(audit)) + "\n"


def _markdown(audit: Audit) -> Iterator[str]:
    yield f"# Audit of {audit.place}\n"
    yield f"- Layout: {audit.layout}, {len(audit.items)} submissions, level {audit.level.value}"
    yield f"- Judged by AgentForge {audit.version} on {audit.device}"
    yield f"- {said(audit)}\n"
    if audit.caught:
        yield "## What caught the refuted ones\n"
        yield from table(("check", "submissions"), list(audit.caught.items()))
        yield ""
    yield "## Submissions\n"
    yield from table(COLUMNS, [row(item) for item in audit.items])


def said(audit: Audit) -> str:
    """Items by outcome on one line: `3 confirmed, 1 refuted`."""
    order = [outcome.value for outcome in Outcome]
    return ", ".join(f"{audit.outcomes[name]} {name}" for name in order if name in audit.outcomes)


def row(item: AuditedItem) -> tuple[str, ...]:
    """Cells below `COLUMNS`."""
    claim = {True: "right", False: "wrong", None: "-"}[item.claim.correct]
    if item.claim.speedup is not None:
        device = f" on {item.claim.device}" if item.claim.device else ""
        claim = f"{item.claim.speedup:.2f}x over {item.claim.baseline}{device}"
    measured = item.speedup.get(item.claim.baseline) if item.evidence == "verified" else None
    found = str(measured) if measured else item.evidence if item.status == "PASSED" else item.status
    detail = item.reasons[0].replace("\n", " ") if item.reasons else ""
    return item.id, claim, found, item.outcome.value, item.caught_by, detail[:200]
