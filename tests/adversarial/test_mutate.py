"""The mutation test of the referee: its patches fit the code, and only what got through counts as noticed."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "adversarial"

pytestmark = pytest.mark.usefixtures("flat_imports")


def resolved(target: str) -> Any:
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def test_every_patch_fits_what_it_replaces() -> None:
    from defences import DEFENCES, Wrapped

    for mutant in DEFENCES:
        for target, replacement in mutant.patches:
            original = resolved(target)
            if not callable(original):
                assert type(replacement) is type(original), target
                continue
            signature = inspect.signature(original)
            made = replacement.make(original) if isinstance(replacement, Wrapped) else replacement
            inspect.signature(made).bind(*signature.parameters)
            if not isinstance(replacement, Wrapped):
                ours, theirs = inspect.signature(made).return_annotation, signature.return_annotation
                known = theirs is not inspect.Signature.empty and ours != "Any"
                assert not known or ours in str(theirs).split(" | "), f"{target} gives {theirs}, not {ours}"


def test_every_weakening_of_workers_fits_what_it_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    from defences import DEFENCES, WEAKENED

    monkeypatch.delenv("AGENTFORGE_WEAKENED", raising=False)
    spec = importlib.util.spec_from_file_location("weakened", WEAKENED / "sitecustomize.py")
    assert spec is not None and spec.loader is not None
    weakened = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(weakened)
    for module, name, weaker in weakened._WEAKER.values():
        original = resolved(f"{module}:{name}")
        assert callable(weaker) is callable(original), name
    assert {m.workers for m in DEFENCES if m.workers} == set(weakened._WEAKER)


def test_every_mutant_has_its_candidates() -> None:
    from corpus import load_cases
    from defences import DEFENCES

    names = [c.name for c in load_cases() if c.kind == "hostile"]
    missing = [p for m in DEFENCES for p in m.noticed_by if not any(p in name for name in names)]
    assert missing == []


def record(outcome: str, leftovers: tuple[str, ...] = ()) -> Any:
    from verdicts import Record

    return Record(name="hostile/a", kind="hostile", group="f01", family=1, problem="relu", outcome=outcome,
                  as_expected=False, status="PASSED", evidence="unverified", leftovers=leftovers)  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "leftovers", "covered_by", "word"),
    [
        ("missed", (), "", "yes"),
        ("broken", ("/tmp/agentforge_escape_1",), "", "yes"),
        ("broken", (), "", "NO"),
        ("broken", (), "another defence", "NO"),
        ("unproven", (), "", "unproven"),
        ("unproven", (), "another defence", "unproven"),
        ("caught", (), "another defence", "covered"),
        ("caught", (), "", "NO"),
    ],
)
def test_only_what_got_through_counts_as_noticed(
    outcome: str, leftovers: tuple[str, ...], covered_by: str, word: str
) -> None:
    from mutate import Finding, concluded

    finding = Finding(mutant="m", what="w", applied=True, noticed=False, covered_by=covered_by)
    found = concluded(finding, [record(outcome, leftovers)])
    assert (found.word, found.right) == (word, word in ("yes", "covered"))
    assert found.unproven == (("hostile/a",) if outcome == "unproven" else ())


def test_each_finding_has_the_commit_that_judged_it() -> None:
    from defences import DEFENCES
    from mutate import examine

    class Judges:
        def judge(self, cases: Any, level: Any, mutant: Any = None) -> list[Any]:
            return [record("missed" if mutant else "caught")]

    found = examine(DEFENCES[0], [], Judges(), "abc")  # type: ignore[arg-type]
    assert found.noticed and found.commit == "abc"
