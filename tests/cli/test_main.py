"""The frame of the command line: help, exit codes, one sentence for each error, JSON errors."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from agentforge.cli import _options
from agentforge.cli._main import build, explain
from agentforge.schema import HarnessError, MachineError, StoreError, UsageError

from .conftest import Run

HEAVY = ("torch", "langgraph", "sqlalchemy", "numpy", "scipy", "rich", "pydantic")


def test_help_imports_nothing_heavy() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "agentforge.cli", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert not [name for name in HEAVY if name in imported]
    assert "optimize" in done.stdout


def test_another_system_is_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    answer = run("doctor")
    assert answer.code == 2
    assert "this is darwin: use Linux or a container" in answer.err


@pytest.mark.timing
def test_help_is_fast() -> None:
    took = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "agentforge.cli", "--help"], capture_output=True, check=True)
        took.append(time.perf_counter() - started)
    assert min(took) < 0.4


@pytest.mark.parametrize(
    "command", ["optimize", "profile", "verify", "runs", "kb", "mcp", "doctor", "version"]
)
def test_every_command_has_help(run: Run, command: str) -> None:
    answer = run(command, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"Usage: agentforge {command}")


def test_the_page_names_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    listed = [line.split() for line in page.splitlines() if line.startswith("    agentforge ")]
    named = {word for line in listed for word in line}
    commands = typer.main.get_command(build()).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        assert {name, *getattr(command, "commands", {})} <= named


@pytest.mark.parametrize("command", [(), ("runs",)])
def test_no_command_shows_the_help(run: Run, command: tuple[str, ...]) -> None:
    answer = run(*command)
    assert answer.code == 2
    assert answer.err.startswith("Usage:")
    assert "Traceback" not in answer.err


def test_version(run: Run) -> None:
    from agentforge import __version__

    assert run("version").out.strip() == run("--version").out.strip() == f"agentforge {__version__}"
    assert run("version", "--json").json == {"version": __version__}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("optimize", "--nope"), "No such option: --nope"),
        (("optimize",), "name a target"),
        (("nope",), "nope"),
        (("runs", "list", "-c", "foo=1"), "unknown setting 'foo'"),
        (("runs", "list", "-c", "foo"), "key.path=value"),
        (("runs", "list", "-c", "referee.processes=1"), "referee.processes"),
        (("runs", "list", "--debug"), "No such option: --debug"),
        (("runs", "show", "nope"), "there is no database"),
        (("runs", "resume", "nope"), "there is no run 'nope'"),
        (("optimize", "model.py", "--attempts", "many"), "--attempts"),
        (("optimize", "model.py", "--minutes", "-1"), "minutes"),
        (("optimize", "model.py", "-c", "referee.full_seconds=.inf"), "referee.full_seconds"),
        (("optimize", "model.py", "-c", "referee.memory_bytes=-1"), "referee.memory_bytes"),
        (("optimize", "model.py", "-c", "search.min_share=.nan"), "search.min_share"),
        (("optimize", "model.py", "-c", "llm.role_max_tokens={coder: -1}"), "llm.role_max_tokens"),
        (("optimize", "model.py", "--device", "tpu"), "'tpu' is not one of the devices"),
        (("mcp", "--http", "99999999"), "--http"),
        (("mcp", "--host", "0.0.0.0"), "--host goes with --http"),
        (("optimize", "model.py", "--llm", "nonsense"), "'nonsense': write anthropic:MODEL"),
        (("optimize", "model.py", "--planner", "["), "'[': write anthropic:MODEL"),
        (("optimize", "model.py", "--llm", "openai:"), "'openai:' names no model"),
        (("optimize", "model.py", "--llm", "openai:m@127.0.0.1:8000"), "http://"),
        (("optimize", "model.py", "--llm", "replay:nowhere.jsonl"), "cannot be read"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_code_2(run: Run, arguments: tuple[str, ...], said: str) -> None:
    Path("model.py").write_text("class Model: pass")
    answer = run(*arguments)
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert answer.out == ""


def test_what_is_shown_stands_below_the_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UsageError("it differs", shown="-one\n+two")

    monkeypatch.setattr("agentforge.store.Store.__init__", refuse)
    assert run("runs", "list").err == "agentforge: it differs\n-one\n+two\n"
    assert run("runs", "list", "--json").json == {
        "error": "it differs",
        "exit_code": 2,
        "shown": "-one\n+two",
    }


@pytest.mark.parametrize("arguments", [("runs", "show", "nope"), ("optimize", "--nope")])
def test_errors_are_json_too(run: Run, arguments: tuple[str, ...]) -> None:
    answer = run(*arguments, "--json")
    assert answer.code == 2
    assert answer.json["exit_code"] == 2
    assert answer.json["error"]
    assert answer.err == ""


@pytest.mark.slow
def test_debug_shows_the_traceback(home: Path) -> None:
    command = [sys.executable, "-m", "agentforge.cli", "--debug", "runs", "show", "nope"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("agentforge: there is no database")


def test_a_rubbish_database(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "agentforge.db").write_bytes(b"rubbish" * 1000)
    answer = run("runs", "list")
    assert answer.code == 2
    assert "agentforge.db" in answer.err
    assert (home / "agentforge.db").read_bytes() == b"rubbish" * 1000


def test_a_database_that_cannot_be_reached(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_DATABASE_URL", "nonsense://")
    answer = run("runs", "list")
    assert answer.code == 2
    assert len(answer.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (HarnessError("the referee failed"), 3, "the referee failed"),
        (MachineError("g++ is missing"), 2, "g++ is missing"),
        (StoreError("the database is newer"), 2, "newer"),
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), 2, "the disk is full (/x/y)"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 2, "Permission denied: /x"),
        (MemoryError(), 2, "out of memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (SystemExit("a plug-in gave up"), 2, "a plug-in gave up"),
        (SystemExit(None), 0, ""),
        (UsageError("x\x1b[2J\x1b[HPASSED"), 2, r"x\u001b[2J\u001b[HPASSED"),
        (ZeroDivisionError("division by zero"), 3, "internal error, ZeroDivisionError: division by zero"),
    ],
)
def test_each_error_has_its_code_and_sentence(error: BaseException, code: int, said: str) -> None:
    found, message = explain(error)
    assert (found, said in message) == (code, True)
    assert "\n" not in message


def test_a_long_error_is_cut() -> None:
    code, said = explain(UsageError("x" * 100_000))
    assert code == 2
    assert len(said) < 1000
    assert said.endswith("(100000 characters)")


@pytest.mark.slow
@pytest.mark.parametrize("command", [("doctor",), ("runs", "list"), ("schema",)])
def test_a_reader_that_has_gone_is_no_failure(home: Path, command: tuple[str, ...]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "agentforge.cli", *command], stdout=theirs, stderr=theirs, timeout=120
        )
    finally:
        os.close(theirs)
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("option", [(), ("--json",)])
def test_output_that_cannot_be_written_is_one_sentence(
    home: Path, option: tuple[str, ...], unbuffered: str
) -> None:
    command = [sys.executable, "-m", "agentforge.cli", "version", *option]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, timeout=120
        )
    assert done.returncode == 2
    said = "the disk is full" if unbuffered else "the output cannot be written (No space left on device)"
    assert done.stderr.startswith(f"agentforge: {said}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "other"), [(">&-", "stderr"), ("2>&-", "stdout")])
def test_a_closed_stream_takes_nothing_and_the_other_gets_no_more(
    home: Path, closed: str, other: str
) -> None:
    for arguments, code, told in (("version", 0, "stdout"), ("profile nowhere.py", 2, "stderr")):
        command = ["sh", "-c", f'exec "$0" -m agentforge.cli {arguments} {closed}', sys.executable]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stderr
        said = getattr(done, other)
        assert len(said.splitlines()) == (other == told), said


def test_a_name_that_the_locale_has_no_letters_for_is_written_with_escapes(home: Path) -> None:
    command = [sys.executable, "-m", "agentforge.cli", "profile", "løb→1.py"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 2
    assert r"l\xf8b\u2192" in done.stderr


def test_a_file_of_an_option_takes_any_text(tmp_path: Path) -> None:
    _options.write_out(tmp_path / "out.md", "half a pair \udcff")
    assert (tmp_path / "out.md").read_text() == "half a pair \\udcff"
