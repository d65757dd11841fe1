"""What each command prints with `--json`, as models; `agentforge schema COMMAND` prints their schemas."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, RootModel, create_model

from agentforge.analysis import Report
from agentforge.campaigns.audit import Audit
from agentforge.campaigns.compare import Comparison
from agentforge.campaigns.extend import Extension
from agentforge.campaigns.recheck import Recheck
from agentforge.campaigns.report import CampaignReport
from agentforge.campaigns.status import CampaignStatus
from agentforge.devices.fallbacks import Fallback
from agentforge.knowledge import (
    CardUse,
    Doubt,
    JudgedClaim,
    KnowledgeStats,
    PairGain,
    SymptomCell,
    UnjudgedClaim,
)
from agentforge.knowledge.lint import Fault
from agentforge.ladder import Ladder
from agentforge.schema import (
    Advice,
    Attempt,
    Campaign,
    CardKind,
    Evaluation,
    Evidence,
    FrozenModel,
    Interval,
    ItemState,
    LLMCall,
    Profile,
    Run,
    Solution,
    Strategy,
    Target,
)

from ._doctor import Check


class ErrorAnswer(FrozenModel):
    """Any command that failed, with exit code 2, 3 or 130."""

    error: str
    """One sentence that says what to do."""
    exit_code: int
    shown: str = ""
    """Text that belongs to the error, for example a difference."""
    run: str = ""
    """The run that was interrupted, or failed."""
    resume: str = ""
    """The command that continues the run or the campaign."""


def _extended(name: str, record: type[BaseModel], doc: str, **fields: Any) -> Any:
    """A model with the fields of a record and others, which may be properties of the record."""
    own: dict[str, Any] = {key: (field.annotation, field) for key, field in record.model_fields.items()}
    return create_model(name, __base__=FrozenModel, __doc__=doc, **fields, **own)


ReportAnswer = _extended(
    "ReportAnswer", Report, "A run's report. `headline` says in one sentence what was reached.", headline=str
)


class AttemptResult(FrozenModel):
    """An evaluation in short; empty if there is none."""

    status: str = ""
    evidence: Evidence | None = None
    level: str = ""
    reasons: tuple[str, ...] = ()
    speedup: dict[str, Interval] = {}
    """By baseline."""


class TriedAttempt(Attempt):
    """An attempt with its result."""

    result: AttemptResult


class ShownKernel(FrozenModel):
    """A kernel that is worth reading."""

    attempt: int
    """Number of the attempt."""
    state: str
    solution: Solution


ShownRun = _extended(
    "ShownRun",
    ReportAnswer,
    "A run's report, every attempt, and kernels only with `--source`.",
    tried=tuple[TriedAttempt, ...],
    kernels=(tuple[ShownKernel, ...], ()),
)


class ListedRun(Run):
    """A run in the list."""

    alive: bool
    """Whether a process works on it now."""


class RunList(FrozenModel):
    """All runs, newest first."""

    runs: tuple[ListedRun, ...]


ComparedRuns = create_model(
    "ComparedRuns",
    __base__=FrozenModel,
    __doc__="The reports of several runs.",
    runs=(tuple[ReportAnswer, ...], ...),  # type: ignore[valid-type]
)


class ExportedRun(FrozenModel):
    """Everything that is stored of a run."""

    format: str
    run: Run
    target: Target
    profile: Profile | None
    records: dict[str, dict[str, Any]]
    """By name: settings, priors, plan and others."""
    attempts: tuple[Attempt, ...]
    solutions: dict[str, Solution]
    """By hash."""
    evaluations: dict[str, Evaluation]
    """By identifier."""
    calls: tuple[LLMCall, ...]
    events: tuple[dict[str, Any], ...]
    """In order; the page on the loop lists the kinds."""


class ExportedFile(FrozenModel):
    """What `runs export RUN --out FILE` wrote."""

    run: str
    file: str
    bytes: int


class RemovedRuns(FrozenModel):
    """What `runs rm` removed."""

    removed: tuple[str, ...]


Verdict = _extended(
    "Verdict",
    Evaluation,
    "The evaluation, with the speedup by baseline (empty if it was not timed) and seconds by stage.",
    speedup=dict[str, Interval],
    seconds_by_stage=dict[str, float],
)


class ListedCampaign(Campaign):
    """A campaign in the list."""

    states: dict[ItemState, int]
    """Items by state."""


class CampaignList(FrozenModel):
    """All campaigns, newest first."""

    campaigns: tuple[ListedCampaign, ...]


StatusAnswer = _extended(
    "StatusAnswer",
    CampaignStatus,
    "How far a campaign is. `finished` says whether no item is left.",
    finished=bool,
)


RetriedItems = _extended(
    "RetriedItems",
    StatusAnswer,
    "A campaign's status, and how many items wait again.",
    retried=int,
)
ImportedCampaign = _extended(
    "ImportedCampaign",
    StatusAnswer,
    "A campaign's status, how many results were taken from the file, and how many were left out.",
    taken=int,
    left=int,
)


class WrittenFiles(FrozenModel):
    """What was written."""

    files: tuple[str, ...]


class RemovedCampaigns(RemovedRuns):
    """What `campaign rm` removed: names of campaigns, and identifiers of runs."""

    runs: tuple[str, ...]


class ExportedCampaign(WrittenFiles):
    """What was written of a campaign."""

    elsewhere: tuple[str, ...]
    """`PROBLEM (ARM)` of verified solutions that only another database has: the campaign was imported."""


AuditAnswer = _extended(
    "AuditAnswer",
    Audit,
    "Submissions with their claims and verdicts; how many have each outcome; what caught the refuted ones.",
    outcomes=dict[str, int],
    caught=dict[str, int],
)


class RecheckedArtifacts(FrozenModel):
    """What became of artifacts."""

    ok: bool
    """Whether all are right, and faster if they are not `eager`."""
    artifacts: tuple[Recheck, ...]


class CardList(FrozenModel):
    """The strategies and other cards of the knowledge base."""

    strategies: tuple[Strategy, ...]
    advice: tuple[Advice, ...]
    uses: dict[str, CardUse]
    """By the card's identifier; only cards that were served."""


class ShownStrategy(Strategy):
    """A strategy, its use in the attempts of this database, and what it gained after others."""

    use: CardUse
    pairs: tuple[PairGain, ...]


class ShownAdvice(Advice):
    """A card that is no technique, and its use in the attempts of this database."""

    use: CardUse


class ShownCard(RootModel[ShownStrategy | ShownAdvice]):
    """One strategy, or one card that is no technique."""


class LintedCards(FrozenModel):
    """What `kb lint` found; the exit code is 2 if there are faults."""

    cards: int
    faults: tuple[Fault, ...]


class CardDraft(FrozenModel):
    """A drafted card."""

    id: str
    kind: CardKind
    file: str


class CardDrafts(FrozenModel):
    """What `kb propose` wrote."""

    drafts: tuple[CardDraft, ...]


class SymptomMatrix(FrozenModel):
    """What each strategy gained where a symptom was seen."""

    cells: tuple[SymptomCell, ...]


class CheckedKnowledge(FrozenModel):
    """Results and lessons that no evaluation in the database supports."""

    doubtful: tuple[Doubt, ...]
    removed: bool
    """Whether these were forgotten."""
    repaired: int
    """Statistics that were computed again."""


class ExportedKnowledge(FrozenModel):
    """What was written."""

    file: str
    strategies: int
    outcomes: int


class ImportedKnowledge(ExportedKnowledge):
    """What was read from a file or another database; `outcomes` and `lessons` count new ones."""

    known: int
    """Outcomes that the database already had, or whose solutions were judged here."""
    lessons: int
    judged: tuple[JudgedClaim, ...] = ()
    """Only with `--verify`."""
    unjudged: tuple[UnjudgedClaim, ...] = ()
    """Only with `--verify`: claims that this machine cannot judge, and why. They stay claims."""
    unknown: int = 0
    """Only with `--verify`: claims about operators that no run here has profiled."""
    without_solution: int = 0
    """Only with `--verify`: claims whose solution the file or the other database does not have."""


class CheckedMachine(FrozenModel):
    """What this machine can do; the exit code is 2 if something vital is missing."""

    ok: bool
    missing: tuple[str, ...]
    """Names of the vital checks that failed."""
    checks: tuple[Check, ...]


GpuAnswer = _extended(
    "GpuAnswer",
    Ladder,
    "What the GPU can do, and what AgentForge does without; the exit code is 2 if no kernel can be judged.",
    ok=bool,
    fallbacks=tuple[Fallback, ...],
)


class Version(FrozenModel):
    """The version of AgentForge."""

    version: str


ANSWERS: dict[str, type[BaseModel]] = {
    "error": ErrorAnswer,
    "optimize": ReportAnswer,
    "profile": Profile,
    "verify": Verdict,
    "runs list": RunList,
    "runs show": ShownRun,
    "runs compare": ComparedRuns,
    "runs export": ExportedRun,
    "runs export --out": ExportedFile,
    "runs artifact": WrittenFiles,
    "export": WrittenFiles,
    "runs resume": ReportAnswer,
    "runs rm": RemovedRuns,
    "campaign list": CampaignList,
    **{f"campaign {name}": StatusAnswer for name in ("start", "status", "work", "pause", "resume")},
    "campaign retry": RetriedItems,
    "campaign import": ImportedCampaign,
    "campaign report": CampaignReport,
    "campaign report --out": WrittenFiles,
    "campaign extend": Extension,
    "campaign compare": Comparison,
    "campaign export": ExportedCampaign,
    "campaign rm": RemovedCampaigns,
    "audit": AuditAnswer,
    "recheck": RecheckedArtifacts,
    "kb list": CardList,
    "kb show": ShownCard,
    "kb lint": LintedCards,
    "kb propose": CardDrafts,
    "kb stats": KnowledgeStats,
    "kb matrix": SymptomMatrix,
    "kb check": CheckedKnowledge,
    "kb export": ExportedKnowledge,
    "kb import": ImportedKnowledge,
    "kb merge": ImportedKnowledge,
    "doctor": CheckedMachine,
    "doctor --gpu": GpuAnswer,
    "version": Version,
}
"""By command; `error` is the answer of each that fails. Infinities and NaN are strings."""
