"""Writing a generated part of a page leaves the rest of the page as it was."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import generated, results_table
from tools.generated import ROOT, GeneratedPart

PART = GeneratedPart("page.md", "numbers", "tools/numbers.py")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    path = tmp_path / "page.md"
    path.write_text(f"before\n{PART.begin}old\n{PART.end}\nafter\n")
    return path


def test_writing_leaves_the_rest_of_the_page(page: Path) -> None:
    assert not PART.is_current("new\n")
    PART.write("new\n")
    assert page.read_text() == f"before\n{PART.begin}new\n{PART.end}\nafter\n"
    assert PART.is_current("new\n")
    assert PART.content == "new\n"


def test_check_writes_nothing(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = page.read_text()
    monkeypatch.setattr(sys, "argv", ["numbers.py", "--check"])
    assert PART.main("new\n") == 1
    assert "run python tools/numbers.py" in capsys.readouterr().out
    assert page.read_text() == before


def test_a_page_without_the_comments_is_refused() -> None:
    with pytest.raises(ValueError):
        PART.within("nothing", "new")


def test_the_results_in_the_readme_are_those_on_record() -> None:
    assert results_table.TABLE.is_current(results_table.table())


def test_the_summary_has_the_mean_and_the_worst_and_names_what_lacks_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(name: str, proven: bool, **points: float) -> None:
        speedup = {base: {"point": p, "low": p - 0.1, "high": p + 0.1} for base, p in points.items()}
        result = {"proven": proven, "end_to_end": {"performance": {"speedup": speedup}}}
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": [{"result": result}]}))

    monkeypatch.setattr(results_table, "RESULTS", tmp_path)
    assert results_table.summary().startswith("0 of 13 models have")
    write("gpt2", True, eager=4.0, compile=2.0)
    write("t5", True, eager=0.5, compile=1.0)
    write("dlrm", False, eager=9.0, compile=9.0)
    (tmp_path / "clip.json").write_text(json.dumps({"results": [{"result": {"error": "no memory"}}]}))
    lines = results_table.summary().splitlines()
    assert lines[0] == "2 of 13 models have a verified speedup over their best baseline."
    assert lines[1] == "Geometric mean 1.00x; worst 0.50x [0.40, 0.60], t5."
    assert "dlrm, clip" in lines[2] and "gpt2" not in lines[2]


def test_the_command_runs_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "results_table.py"), "--check"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)


_RUN_WITHOUT_THE_ROOT = """
import runpy, sys
from pathlib import Path

import agentforge  # its package is found hereafter as in an installed wheel

found = [path for path in sys.path if not (Path(path) / "tools" / "generated.py").is_file()]
for script in sys.argv[1:]:
    for name in sys.modules.keys() & {"tools", "tools.generated", "agreement", "kb_transfer"}:
        del sys.modules[name]
    sys.path[:] = [str(Path(script).parent), *found]
    runpy.run_path(script)
"""


@pytest.mark.slow
def test_a_clone_need_not_be_installed_as_editable(tmp_path: Path) -> None:
    scripts = [
        str(path)
        for folder in ("benchmarks", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^from (tools|agreement|kb_transfer)\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(scripts) > 8
    command = [sys.executable, "-c", _RUN_WITHOUT_THE_ROOT, *scripts]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
