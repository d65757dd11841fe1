"""Partial runs, and whole ones that stop, leave published results as they are."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

pytestmark = pytest.mark.usefixtures("flat_imports")

PARTS = [
    ("run", "--level quick"),
    ("run", "--family 16"),
    ("run", "--resume --level quick"),
    ("run", "--resume --compile"),
    ("mutate", "--only norm"),
    ("escape", "--only network"),
    ("escape", "--rounds 2"),
    ("soak", "--seconds 600"),
    ("campaign_queue", "--workers 16 --items 2000"),
    ("audit_corpus", "--level quick"),
    ("search.lab", "--seeds 3"),
    ("search.lab", "--policies greedy"),
    ("llm_loop", "--seeds 1"),
    ("llm_faults", "--attempts 20"),
    ("llm_overhead", "--attempts 5"),
]


@pytest.mark.parametrize(("script", "options"), PARTS)
def test_a_partial_run_needs_a_file_of_its_own(
    script: str, options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = importlib.import_module(script).arguments
    with pytest.raises(SystemExit) as ended:
        arguments(options.split())
    said = capsys.readouterr().err
    output = "--output" if "--output" in said else "--out"
    assert ended.value.code == 2 and f"name a file with {output}" in said
    assert arguments([*options.split(), output, str(tmp_path / "part.json")])


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("run", ""), ("run", "--list --family 16"), ("run", "--resume --family 16"), ("mutate", "--resume"),
        ("mutate", "--resume --only norm"), ("escape", ""), ("soak", "--evaluations 1000"),
        ("campaign_queue", "--workers 4 --child url 0"), ("audit_corpus", "--home folder"),
        ("search.lab", "--figure page.html"), ("search.lab", "--table"), ("llm_loop", "--workers 8"),
    ],
)  # fmt: skip
def test_a_whole_run_needs_none(script: str, options: str) -> None:
    assert importlib.import_module(script).arguments(options.split())


@pytest.mark.slow
def test_escape_tests_that_are_stopped_keep_what_they_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    escape = importlib.import_module("escape")
    from verdicts import Outcome, Record

    record = Record(name="a", kind="hostile", group="f40", family=40, problem="relu", outcome=Outcome.CAUGHT,
                    as_expected=True, status="CHEATING", evidence="unverified")  # fmt: skip
    trials = iter([escape.Trial(attack=record, after=record, survived=True)])

    def trial(*_: Any) -> Any:
        if (found := next(trials, None)) is None:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(escape, "trial", trial)
    monkeypatch.setattr(escape.Judging, "evaluate", lambda *_: record)
    published = tmp_path / "escape.json"
    published.write_text("published")
    with pytest.raises(KeyboardInterrupt):
        escape.main(["--output", str(published)])
    assert published.read_text() == "published"
    assert json.loads(published.with_suffix(".part").read_text())["survived"] == 1


@pytest.mark.parametrize("script", ["products", "epilogues"])
def test_comparisons_that_are_stopped_keep_what_they_found(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(script)
    found = iter([{"speedup": 1.0}])

    def compare(*_: Any) -> Any:
        if (one := next(found, None)) is None:
            raise KeyboardInterrupt
        return one

    monkeypatch.setattr(module, "compare", compare)
    monkeypatch.setattr(module, "RESULTS", tmp_path / f"{script}.json")
    monkeypatch.setattr(module.torch, "set_num_threads", lambda _: None)
    if script == "products":
        roofline = type("Roofline", (), {"peak_flops": {"float32": 1.0}})
        monkeypatch.setattr(module, "measure_roofline", lambda *_: roofline)
    else:
        monkeypatch.setattr(module, "product", lambda *_: (None, None))
    with pytest.raises(KeyboardInterrupt):
        module.main()
    assert not module.RESULTS.exists()
    assert len(json.loads((tmp_path / f"{script}.part").read_text())[script]) == 1


def test_a_whole_run_replaces_the_results(tmp_path: Path) -> None:
    written = importlib.import_module("_published").write_results
    output = tmp_path / "new" / "found.json"
    written(output, {"a": 1}, whole=False)
    written(output, {"a": 2}, whole=True)
    assert json.loads(output.read_text()) == {"a": 2}
    assert list(output.parent.iterdir()) == [output]
