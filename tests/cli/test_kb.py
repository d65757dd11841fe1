"""`agentforge kb`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentforge.cli._kb_claims import _print_verdicts
from agentforge.cli.answers import ANSWERS
from agentforge.devices import DeviceSpec, detect
from agentforge.knowledge import ClaimVerdicts, JudgedClaim, KnowledgeBase
from agentforge.schema import BuildSpec, Strategy
from agentforge.store import Store
from tests.store import nouns

from .conftest import Run


@pytest.fixture
def learned(home: Path) -> None:
    (home / "playbook").mkdir(parents=True)
    card = "---\nid: my-trick\ntitle: My trick\nsummary: It helps.\nop_types: [norm]\n---\nHow it works."
    (home / "playbook" / "my-trick.md").write_text(card)
    with Store(f"sqlite:///{home}/agentforge.db") as store:
        base = KnowledgeBase(store, [home / "playbook"])
        for number in range(3):
            solution = nouns.solution(str(number))
            base.record("my-trick", nouns.context(), solution, nouns.evaluation(solution), {"u": 8})


@pytest.mark.usefixtures("learned")
class TestLearned:
    def test_list(self, run: Run) -> None:
        found = {s["id"]: s for s in run("kb", "list", "--json").json["strategies"]}
        assert found["my-trick"]["records"][0]["n"] == 3
        text = run("kb", "list").out
        assert "my-trick" in text
        assert "2.00x" in text

    def test_credit_is_beside_the_whole_speedup(self, run: Run, home: Path) -> None:
        with Store(f"sqlite:///{home}/agentforge.db") as store:
            solution, before = nouns.solution("then"), nouns.evaluation(nouns.solution("0"))
            evaluation = nouns.evaluation(solution, speedup=3.0)
            base = KnowledgeBase(store, [home / "playbook"])
            base.record("then-trick", nouns.context(), solution, evaluation, parent=("my-trick", before))
        (listed,) = (line for line in run("kb", "list").out.splitlines() if "then-trick" in line)
        assert "3.00x" in listed
        assert "1.50x" in listed
        shown = run("kb", "show", "then-trick").out
        assert "after my-trick: then-trick gains 1.50x (1 verified)" in shown
        (row,) = (line for line in shown.splitlines() if "dram/many-rows" in line)
        assert "3.00x" in row
        assert "1.50x" in row
        body = run("kb", "show", "then-trick", "--json").json
        assert body["pairs"] == [{"after": "my-trick", "n": 1, "gain": pytest.approx(1.5)}]
        assert ANSWERS["kb show"].model_validate_json(json.dumps(body)).model_dump()["id"] == "then-trick"
        assert "after" not in run("kb", "show", "my-trick").out

    def test_show(self, run: Run) -> None:
        assert run("kb", "show", "my-trick", "--json").json["body"] == "How it works."
        text = run("kb", "show", "my-trick").out
        for words in ("My trick", "How it works.", "dram/many-rows", "2.00x", "u=8"):
            assert words in text

    def test_stats(self, run: Run) -> None:
        numbers = run("kb", "stats", "--json").json
        assert numbers["verified"] == numbers["faster"] == 3
        assert numbers["geometric_mean_speedup"] == pytest.approx(2.0)
        assert "2.000" in run("kb", "stats").out

    def test_to_another_home(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = str(tmp_path / "k.jsonl")
        assert run("kb", "export", file, "--json").json["outcomes"] == 3
        monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "other"))
        assert run("kb", "import", file, "--json").json["outcomes"] == 3
        assert run("kb", "import", file, "--json").json == {
            "file": file,
            "strategies": len(run("kb", "list", "--json").json["strategies"]),
            "outcomes": 0,
            "known": 3,
            "lessons": 0,
        }
        (record,) = run("kb", "show", "my-trick", "--json").json["records"]
        assert (record["n"], record["claims"]) == (0, 3), "not judged on this machine"
        shown = run("kb", "show", "my-trick").out
        assert "claimed: from another database, not ranked" in shown
        assert "Prior speedup" not in shown
        assert "Prior speedup" in run("kb", "show", "fuse-row-program").out


def test_no_such_strategy(run: Run) -> None:
    answer = run("kb", "show", "nothing")
    assert answer.code == 2
    assert "kb list" in answer.err
    assert answer.err.count("\n") == 1


def test_a_wrong_card(run: Run, home: Path) -> None:
    (home / "playbook").mkdir(parents=True)
    (home / "playbook" / "bad.md").write_text("---\ntitle: x\n---\n")
    answer = run("kb", "list")
    assert answer.code == 2
    assert "bad.md" in answer.err
    assert "'id'" in answer.err


AVOID = "---\nid: no-trick\nkind: avoid\ntitle: No trick\nsummary: It costs.\nsource: SOURCE\n---\nWhy not."


def test_cards_of_other_kinds(run: Run, home: Path) -> None:
    (home / "playbook" / "avoid").mkdir(parents=True)
    (home / "playbook" / "avoid" / "no-trick.md").write_text(AVOID.replace("SOURCE", "A paper, 2020"))
    assert "No trick" in run("kb", "list", "--kind", "avoid").out
    assert "no-trick" not in run("kb", "list", "--kind", "technique").out
    shown = run("kb", "show", "no-trick").out
    assert "Why not." in shown
    assert "source: A paper, 2020" in shown
    assert run("kb", "show", "no-trick", "--json").json["kind"] == "avoid"


def test_lint(run: Run, home: Path) -> None:
    card = home / "card.md"
    card.parent.mkdir(parents=True)
    card.write_text(AVOID.replace("SOURCE", "hearsay"))
    answer = run("kb", "lint", str(card))
    assert answer.code == 2
    assert "source" in answer.out
    assert run("kb", "lint", str(card), "--json").json["faults"][0]["field"] == "source"
    card.write_text(AVOID.replace("SOURCE", "A paper, 2020"))
    assert run("kb", "lint", str(card)).code == 0
    assert run("kb", "lint", str(home / "nothing")).code == 2


def test_lint_without_a_card_of_the_users(run: Run, home: Path) -> None:
    (home / "playbook").mkdir(parents=True)
    answer = run("kb", "lint")
    assert answer.code == 0
    assert "cards are in order" in answer.out
    assert run("kb", "lint", str(home / "playbook")).code == 2, "it was named"


def test_propose(run: Run, home: Path) -> None:
    assert "no strategy has enough" in run("kb", "propose").out
    with Store(f"sqlite:///{home}/agentforge.db") as store:
        base = KnowledgeBase(store, [])
        for number, shape in enumerate(("dram/many-rows", "l2/few-rows", "l1/one-row")):
            solution = nouns.solution(str(number))
            base.record("my-trick", nouns.context(shape_class=shape), solution, nouns.evaluation(solution))
    assert run("kb", "propose", "--out", "drafts", "--json").json["drafts"][0]["kind"] == "technique"
    assert "The draft rests on" in Path("drafts/my-trick.md").read_text()
    again = run("kb", "propose", "--out", "drafts")
    assert again.code == 2
    assert "exists" in again.err


def test_a_wrong_file(run: Run, tmp_path: Path) -> None:
    assert run("kb", "import", str(tmp_path / "nothing")).code == 2
    assert run("kb", "export", str(tmp_path / "nothing" / "k.jsonl")).code == 2


def test_words_of_another_database_do_not_reach_the_terminal_raw(run: Run, home: Path) -> None:
    odd = nouns.context(shape_class="\x1b[2J/\u202erows")
    claim = Strategy(id="trick\x1b[31m", title="\x1b[8mT", summary="S\r", body="B\x07\nmore", claimed=True)
    with Store(f"sqlite:///{home}/agentforge.db") as store:
        solution = nouns.solution("s")
        KnowledgeBase(store, []).record("own", odd, solution, nouns.evaluation(solution))
        (outcome,) = store.outcomes()
        changed = {"id": "c", "strategy": claim.id, "claimed": True, "origin": "a\x1b]0;title\x07.db"}
        store.remove_outcomes([outcome.id])
        store.add_knowledge([claim], [], [outcome.model_copy(update=changed)])
    for shown in (run("kb", "list").out, run("kb", "show", claim.id).out):
        assert shown.replace("\n", "").isprintable()
        assert "\\u001b" in shown
    assert "B\\u0007\nmore" in shown


@pytest.fixture
def bundle(run: Run, home: Path) -> str:
    """A file with two claims. Nothing can judge them: one needs a language of a plug-in, and the reference of
    the other one does not run."""
    home.mkdir()
    with Store(f"sqlite:///{home}/agentforge.db") as store:
        store.create_run(nouns.run())
        store.save_profile(nouns.run().id, nouns.profile())
        for number, language in enumerate(("cpp", "nope"), start=2):
            solution = nouns.solution(language, spec=BuildSpec(language=language))
            evaluation = nouns.evaluation(solution, speedup=float(number))
            store.save_solution(solution)
            store.save_evaluation(evaluation)
            KnowledgeBase(store, []).record(f"{language}-trick", nouns.context(), solution, evaluation)
    file = str(home / "k.jsonl")
    assert run("kb", "export", file).code == 0
    return file


@pytest.mark.slow
def test_if_nothing_is_judged_the_command_says_why(
    run: Run, bundle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = ("kb", "import", bundle, "--verify", "1", "--device", "cpu")
    assert "no claim waits for a verdict" in run(*verify).out, "all were measured here"
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "other"))
    assert "run `agentforge optimize` on the model first" in run(*verify).out
    answer = run(*verify, "--trust-references")
    assert answer.code == 0
    first, second = (line for line in answer.out.splitlines() if "cannot be judged here: " in line)
    assert first.startswith("nope-trick (3.00x)")
    assert second.startswith("cpp-trick (2.00x)")
    listed = run(*verify, "--trust-references", "--json").json
    assert (listed["judged"], len(listed["unjudged"]), listed["unknown"]) == ([], 2, 0)
    assert run(*verify, "--json").json["unknown"] == 2


def test_unknown_claims_are_counted_beside_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    solution = nouns.solution("s")
    judged = JudgedClaim("my-trick", 3.0, nouns.evaluation(solution))
    _print_verdicts("k.jsonl", ClaimVerdicts((judged,), (), unknown=7, without_solution=0))
    said = capsys.readouterr().out
    assert "my-trick" in said
    assert "the operators of some claims (7)" in said
    assert "--trust-references" in said


def test_claims_without_their_solutions_are_named(
    run: Run, bundle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Path(bundle).read_text().splitlines(keepends=True)
    Path(bundle).write_text("".join(line for line in lines if '"solution": {' not in line))
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "other"))
    verify = ("kb", "import", bundle, "--verify", "5", "--device", "cpu")
    said = run(*verify).out
    assert "k.jsonl lacks the solutions of some claims (2)" in said
    assert "no claim waits" not in said
    assert run(*verify, "--json").json["without_solution"] == 2


def test_a_wrong_device_is_named_before_anything_is_written(
    run: Run, bundle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "other"))
    answer = run("kb", "import", bundle, "--verify", "1", "--device", "nope")
    assert answer.code == 2
    assert "'nope'" in answer.err
    assert run("kb", "stats", "--json").json["outcomes"] == 0


def test_claims_are_judged_on_a_device_whose_ladder_was_climbed(
    run: Run, bundle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def find_device(kind: str, cache: Path, progress: object = None) -> DeviceSpec:
        asked.append(kind)
        return detect("cpu")

    monkeypatch.setattr("agentforge.ladder.find_device", find_device)
    assert run("kb", "import", bundle, "--verify", "1", "--device", "cuda").code == 0
    assert asked == ["cuda"]
