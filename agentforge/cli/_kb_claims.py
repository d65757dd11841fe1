"""`agentforge kb import | merge`: take what a file or another database says as claims, and judge some."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentforge.views import output as _print

from . import _options

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentforge.config import Settings
    from agentforge.devices import DeviceSpec
    from agentforge.knowledge import Bundle, ClaimVerdicts
    from agentforge.store import Store

Verify = Annotated[
    int, typer.Option("--verify", min=0, metavar="N", help="Judge the N most promising claims here.")
]
TrustReferences = Annotated[
    bool,
    typer.Option(
        "--trust-references",
        help="With --verify: also judge operators that no run here has profiled. The references of the file "
        "or database then run without a sandbox.",
    ),
]


def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of JSON lines.")],
    verify: Verify = 0,
    trust_references: TrustReferences = False,
    device: _options.Device = "auto",
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Merge a file that `kb export` wrote, as claims. Existing entries do not change."""
    from agentforge.knowledge import read_bundle

    _take(str(file), read_bundle(file), verify, trust_references, device, config, json)


def merge(
    other: Annotated[str, typer.Argument(metavar="DATABASE", help="Another database: a file or a URL.")],
    verify: Verify = 0,
    trust_references: TrustReferences = False,
    device: _options.Device = "auto",
    config: _options.Config = None,
    json: _options.Json = False,
) -> None:
    """Merge what another database knows, as claims. Its entries and the existing ones do not change."""
    from agentforge.knowledge import read_database

    bundle = read_database(other, _options.settings(config).url, evidence=verify > 0)
    _take(bundle.origin, bundle, verify, trust_references, device, config, json)


def _take(
    name: str,
    bundle: Bundle,
    verify: int,
    trust_references: bool,
    device: str,
    config: list[str] | None,
    json: bool,
) -> None:
    from dataclasses import asdict

    from agentforge.knowledge import import_knowledge
    from agentforge.store import Store

    verdicts, settings = None, _options.settings(config)
    progress = None if json else _print.aside
    spec = _device(device, settings, progress) if verify else None  # before anything is written
    with Store(settings.url) as store:
        done = import_knowledge(store, bundle)
        if spec is not None:
            verdicts = _judge(store, bundle, verify, trust_references, spec, settings, progress)
    if json:
        _print.as_json({"file": name, **asdict(done), **(_as_dict(verdicts) if verdicts else {})})
        return
    _print.line(
        f"read {done.outcomes} new outcomes from {name} ({done.known} were known): claims, which weigh "
        "little until this machine has judged the strategies itself"
    )
    if verdicts:
        _print_verdicts(name, verdicts)


def _as_dict(verdicts: ClaimVerdicts) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "judged": [
            {"strategy": j.strategy, "claimed_speedup": j.claimed_speedup, "evaluation": j.evaluation}
            for j in verdicts.judged
        ],
        "unjudged": [asdict(claim) for claim in verdicts.unjudged],
        "unknown": verdicts.unknown,
        "without_solution": verdicts.without_solution,
    }


def _print_verdicts(name: str, verdicts: ClaimVerdicts) -> None:
    if verdicts.judged:
        _print.table(
            ["strategy", "claimed", "here", "status", "evidence"],
            (
                (
                    j.strategy,
                    f"{j.claimed_speedup:.2f}x",
                    f"{p.speedup_over_best.point:.2f}x" if (p := j.evaluation.performance) else "",
                    j.evaluation.status.value,
                    j.evaluation.evidence.value,
                )
                for j in verdicts.judged
            ),
        )
    for claim in verdicts.unjudged:
        _print.line(f"{claim.strategy} ({claim.claimed_speedup:.2f}x) cannot be judged here: {claim.why}")
    if verdicts.without_solution:
        _print.line(
            f"{name} lacks the solutions of some claims ({verdicts.without_solution}), so they cannot be "
            "judged: use an export of the database that measured them"
        )
    if verdicts.unknown:
        _print.line(
            f"no run here has profiled the operators of some claims ({verdicts.unknown}), so they were not "
            "judged: run `agentforge optimize` on the model first, or add --trust-references if you trust "
            "the code that comes with the claims"
        )
    elif not (verdicts.judged or verdicts.unjudged or verdicts.without_solution):
        _print.line(
            f"no claim waits for a verdict: every verified solution of {name} was measured or judged here"
        )


def _device(kind: str, settings: Settings, progress: Callable[[str], None] | None) -> DeviceSpec:
    from agentforge.config import check_threads
    from agentforge.ladder import find_device

    check_threads(settings.referee)
    return find_device(kind, settings.cache, progress)


def _judge(
    store: Store,
    bundle: Bundle,
    most: int,
    trust_references: bool,
    device: DeviceSpec,
    settings: Settings,
    progress: Callable[[str], None] | None,
) -> ClaimVerdicts:
    from functools import partial

    from agentforge.knowledge import KnowledgeBase, judge_claims
    from agentforge.referee import Referee

    with Referee(settings.referee, device=device, cache=settings.cache) as referee:
        return judge_claims(
            KnowledgeBase(store, settings.playbooks),
            store,
            bundle,
            most,
            evaluate=partial(referee.evaluate, progress=progress),
            device=device,
            trust_references=trust_references,
        )
