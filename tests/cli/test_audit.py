"""`agentforge audit` and `recheck` with bad input; what they judge is in tests/campaigns."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.cli.answers import ANSWERS

from .conftest import Run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("audit", "nowhere"), "nowhere does not exist: name the folder or file"),
        (("audit", "empty"), "has no known layout"),
        (("audit", "empty", "--layout", "paper"), "paper"),
        (("audit", "empty", "--level", "sloppy"), "--level takes quick or full"),
        (("audit", "run"), "add --problems DIR"),
        (("audit", "run", "--problems", "empty"), "has no folder level1 to level4"),
        (("recheck", "empty"), "is no artifact: give the folder with plan.json"),
        (("recheck", "nowhere"), "is no artifact"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "level_1_problem_1_sample_0_kernel.py").write_text("class ModelNew: ...\n")
    answer = run(*arguments)
    assert answer.code == 2
    assert words in answer.err
    assert "Traceback" not in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_a_file_that_cannot_be_written_is_refused_before_the_work(run: Run, tmp_path: Path) -> None:
    (tmp_path / "claims.json").write_text('[{"solution": "a.py", "reference": "b.py"}]')
    answer = run("audit", str(tmp_path), "--device", "cpu", "--markdown", "nowhere/audit.md")
    assert answer.code == 2
    assert "--markdown nowhere/audit.md cannot be written" in answer.err
    assert "[1/1]" not in answer.err


def test_a_folder_without_usable_kernels_is_answered_without_the_referee(run: Run, tmp_path: Path) -> None:
    (tmp_path / "claims.json").write_text('[{"solution": "a.py", "reference": "b.py", "speedup": 9}]')
    answer = run("audit", str(tmp_path), "--device", "cpu", "--json", "--markdown", "audit.md")
    assert answer.code == 0
    assert ANSWERS["audit"].model_validate(answer.json)
    assert answer.json["outcomes"] == {"unsupported": 1}
    assert "a.py is not in the folder" in Path("audit.md").read_text()
