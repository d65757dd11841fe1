"""What cannot work is refused before a model is loaded or a database is opened."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agentforge.config import RefereeSettings, Settings, load_settings
from agentforge.runs import TargetStart
from agentforge.runs.checks import check_out, check_record, check_run, check_start, check_threads
from agentforge.runs.session import Workbench
from agentforge.schema import UsageError
from agentforge.whole_file import whole_artifact
from tests.cli.conftest import Run, home, run
from tests.store import nouns

__all__ = ["home", "run"]


@pytest.mark.parametrize("flag", ["--minutes", "--dollars"])
@pytest.mark.parametrize("limit", ["inf", "nan", "-1"])
def test_a_limit_is_a_finite_number(run: Run, flag: str, limit: str) -> None:
    answer = run("optimize", "model.py", "--device", "cpu", flag, limit)
    assert answer.code == 2
    assert flag.removeprefix("--") in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-c", "search.policy=nope"), "'nope' is not one of the policies: best-first"),
        (("-c", f"referee.threads={len(os.sched_getaffinity(0)) + 1}"), "set it to"),
        (("-c", "referee.threads=100000"), "set it to"),
        (("-c", "search.language=cobol"), "'cobol' is not one of the languages"),
        (("-c", "referee.language_options.cpp.fast=1"), "'cpp' (languages) has no option 'fast'"),
        (("-c", "frontend_options.stak.rows=1"), "'stak' is not one of the frontends"),
        (("-c", "referee.sandbox=cage"), "'cage' is not one of the sandboxes"),
        (("-c", "referee.sandbox_options.key=1"), "name the sandbox too"),
        (("--out", "file/made"), "is not a folder"),
        (("--out", "/proc/x"), "/proc cannot be written"),
        (("--llm", "openai:gpt-x"), "OPENAI_API_KEY"),
        (("--minutes", "1e9"), "budget.minutes"),
    ],
)
def test_the_command_says_it_before_the_model_is_loaded(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], says: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "file").touch()
    (tmp_path / "model.py").write_text("import time\ntime.sleep(60)\n")
    answer = run("optimize", "model.py", "--device", "cpu", *options)
    assert answer.code == 2
    assert says in answer.err
    assert "Traceback" not in answer.err
    assert run("runs", "list", "--json").json == {"runs": []}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere.py",), "does not exist"),
        (("~no-such-user/model.py",), "there is no such user"),
        (("~no-such-user/model.py:Model", "--input-shape", "1,3"), "there is no such user"),
        (("hf:~no-such-user/config.json",), "there is no such user"),
        (("model.py", "--shapes", "batch=1..1"), "below the second"),
        (("model.py", "--dtype", "int64"), "brings its own get_inputs"),
        (("model.py:Other", "--input-shape", "1,3"), "its classes are: Model"),
        (("model.py:Model", "--input-shape", "-1,3"), "does not read"),
        (("model.py", "--device", "tpu"), "is not one of the devices"),
        (("model.py", "--out", "/proc/x"), "/proc cannot be written"),
        (("model.py", "--allow", "bf16", "--metric", "no.py:f", "--bound", "1%"), "cannot be read"),
        (
            ("f.c", "--from", "sequential", "--input", "n=3", "--dtype", "float64"),
            "leave out --input, --dtype",
        ),
        (("--intent", "softmax", "--input-shape", "2,3"), "leave out --input-shape"),
    ],
)
def test_the_command_says_it_before_the_search_is_imported(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    Path("model.py").write_text("class Model: pass")
    monkeypatch.setitem(sys.modules, "agentforge.runs.execution", None)  # its import fails
    monkeypatch.setitem(sys.modules, "agentforge.runs.pipeline", None)
    answer = run("optimize", *arguments)
    assert answer.code == 2
    assert says in answer.err


def test_an_out_folder_is_empty_new_or_an_artifact(tmp_path: Path) -> None:
    check_out(None)
    check_out(tmp_path / "new" / "below")
    (tmp_path / "plan.json").write_text('{"mode": "eager", "units": []}')
    check_out(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").touch()
    with pytest.raises(UsageError, match="no artifact"):
        check_out(tmp_path / "other")
    with pytest.raises(UsageError, match="is not a folder"):
        check_out(tmp_path / "plan.json" / "below")


@pytest.mark.parametrize("text", ['{"format_version": "1.2"}', "[]", "no JSON", ""])
def test_a_plan_of_another_program_makes_no_artifact(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(UsageError, match="no artifact"):
        check_out(tmp_path)
    with pytest.raises(UsageError, match="is not an artifact"), whole_artifact(tmp_path):
        pass
    assert (tmp_path / "plan.json").read_text() == text


def test_an_out_folder_can_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "new")
    check_out(tmp_path / "link")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(UsageError, match="contains the working folder"):
        check_out(Path())
    monkeypatch.setattr(Path, "is_mount", lambda self: True)
    with pytest.raises(UsageError, match="new is a mount point"):
        check_out(tmp_path / "new")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that each user may enter, as `tmp_path` is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def as_nobody(call: str, path: Path) -> str:
    """What a call of `checks` on a path says to a user without rights: root writes everywhere."""
    code = (
        "import os, pwd, sys\n"
        "from pathlib import Path\n"
        "from agentforge.runs.checks import *\n"
        "if os.geteuid() == 0:\n"
        "    os.setuid(pwd.getpwnam('nobody').pw_uid)\n"
        f"{call}(Path(sys.argv[1]))\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stderr


@pytest.mark.slow
def test_an_out_folder_can_be_written(shared: Path) -> None:
    closed = shared / "closed"
    (closed / "empty").mkdir(parents=True)
    (closed / "empty").chmod(0o777)
    closed.chmod(0o555)
    for name in ("made", "empty"):  # to replace a folder takes the right to write in the one above it
        said = as_nobody("check_out", closed / name)
        assert "UsageError" in said
        assert f"{closed} cannot be written: choose another folder" in said


def test_a_home_folder_can_be_written(shared: Path) -> None:
    (shared / "home").mkdir()
    said = as_nobody("check_home", shared / "home")
    assert "cannot be written: set AGENTFORGE_HOME to another one" in said


def test_a_database_that_cannot_be_opened_is_refused_before_the_model_is_loaded(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "model.py").write_text("import time\ntime.sleep(60)\nclass Model: pass\n")
    (tmp_path / "a.db").write_bytes(b"rubbish" * 1000)
    answer = run("optimize", "model.py", "--device", "cpu", "-c", f"database_url=sqlite:///{tmp_path}/a.db")
    assert answer.code == 2
    assert "a.db" in answer.err
    assert "sleep" not in answer.err


def test_threads_are_at_most_the_processors() -> None:
    check_threads(RefereeSettings())
    with pytest.raises(UsageError, match="processors"):
        check_threads(RefereeSettings(threads=len(os.sched_getaffinity(0)) + 1))


def test_no_setting_makes_a_budget_infinite() -> None:
    with pytest.raises(UsageError, match=r"setting budget\.minutes"):
        load_settings(["budget.minutes=.inf"])


def test_a_cassette_that_cannot_be_written_is_refused_first(tmp_path: Path, shared: Path) -> None:
    check_record(None)
    check_record(tmp_path / "new" / "cassette.jsonl")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="is a folder: choose another file"):
        check_record(tmp_path)
    with pytest.raises(UsageError, match="/proc cannot be written"):
        check_record(Path("/proc/x.jsonl"))
    with pytest.raises(UsageError, match="--record"):
        check_run(load_settings(["llm.record=/proc/nope/x.jsonl"]), None)
    kept = shared / "kept.jsonl"
    kept.touch(0o444)
    assert f"{kept} is read-only: choose another file" in as_nobody("check_record", kept)


def test_the_device_of_a_run_has_the_referees_threads(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, referee=RefereeSettings(threads=1))
    start = TargetStart(nouns.target)
    assert check_start(start, settings, device="cpu", out=None, permission=None).threads == 1
    with closing(Workbench(settings, "cpu")) as bench:
        assert bench.device.threads == 1
