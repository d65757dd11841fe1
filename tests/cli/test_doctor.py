"""`agentforge doctor`, on this machine and on poorer ones."""

from __future__ import annotations

import re
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agentforge.cli import _doctor as _checks
from agentforge.config import Settings
from agentforge.store import Store

from .conftest import Run


def _by_name(answer: Any) -> dict[str, Any]:
    return {check["name"]: check for check in answer["checks"]}


def test_this_machine(run: Run, home: Path) -> None:
    answer = run("doctor", "--json")
    checks = _by_name(answer.json)
    assert {"cpu", "gpu", "g++", "nvcc", "ncu", "torch", "triton", "database", "disk"} <= checks.keys()
    assert checks["cpu"]["state"] == "ok"
    assert checks["torch"]["state"] == "ok"
    assert answer.code == (0 if answer.json["ok"] else 2)
    assert all(c["fix"] for c in answer.json["checks"] if c["state"] == "missing")
    assert not (home / "agentforge.db").exists(), "a doctor changes nothing"


def test_the_table(run: Run) -> None:
    answer = run("doctor")
    assert "roofline cpu" in answer.out
    assert "not measured yet" in answer.out


def test_a_terminal_of_80_columns_shows_how_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("doctor").out
    assert "how to install" in shown
    assert "left out" not in shown


def test_keys_are_never_shown(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AGENTFORGE_LLM_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("AGENTFORGE_LLM_API_KEY=sk-very-secret\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    answer = run("doctor", "--json")
    assert "sk-very-secret" not in answer.out
    checks = _by_name(answer.json)
    assert checks["OPENAI_API_KEY"]["detail"] == "set"
    assert checks["ANTHROPIC_API_KEY"]["state"] == "optional"
    assert checks["AGENTFORGE_LLM_API_KEY"]["detail"] == "set", "in .env"


def test_a_password_is_never_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_DATABASE_URL", "postgresql+psycopg://me:hunter2@/x?host=/nothing")
    answer = run("doctor", "--json")
    assert "hunter2" not in answer.out
    assert _by_name(answer.json)["database"]["state"] == "missing"
    assert answer.code == 2


def test_a_worker_is_really_confined() -> None:
    found = {check.name: check for check in _checks.sandboxes()}
    assert found["worker"].state is _checks.State.OK
    assert "limited by" in found["worker"].detail


def test_a_worker_that_cannot_be_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandboxes answer for themselves; the worker fails as it would in an evaluation."""
    monkeypatch.setattr("agentforge.referee.probe._PROGRAM", "raise SystemExit('no such library')")
    found = {check.name: check for check in _checks.sandboxes()}
    assert found["worker"].state is _checks.State.MISSING
    assert "no such library" in found["worker"].detail
    assert "rlimits" in found["worker"].fix


def test_a_damaged_database(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "agentforge.db").write_bytes(b"rubbish" * 1000)
    answer = run("doctor", "--json")
    assert answer.code == 2
    assert "database" in answer.json["missing"]
    assert "move it away" in _by_name(answer.json)["database"]["fix"]


@pytest.mark.parametrize(
    ("revision", "state", "said"),
    [
        ("0015", "optional", "upgrades them"),
        ("9999", "missing", "upgrade agentforge"),
        ("", "optional", "makes"),
    ],
)
def test_a_database_of_another_version_is_left_alone(
    tmp_path: Path, revision: str, state: str, said: str
) -> None:
    settings, file = Settings(home=tmp_path), tmp_path / "agentforge.db"
    if revision:
        Store(settings.url).close()
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE agentforge_version SET version_num = ?", [revision])
    else:
        file.touch()
    before = file.read_bytes()
    (check,) = (check for check in _checks.storage(settings) if check.name == "database")
    assert (check.state.value, said in check.fix) == (state, True)
    assert file.read_bytes() == before


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentforge.devices.tool_version", lambda _: None)
    found = {check.name: check for check in _checks.tools()}
    assert found["g++"].state is _checks.State.MISSING
    assert "apt-get install g++" in found["g++"].fix
    assert found["ncu"].state is _checks.State.OPTIONAL


@pytest.mark.parametrize(("chosen", "state"), [("clang++", "ok"), ("ccache g++", "missing")])
def test_the_compiler_that_builds_is_checked(
    monkeypatch: pytest.MonkeyPatch, chosen: str, state: str
) -> None:
    monkeypatch.setenv("CXX", chosen)
    monkeypatch.setattr("agentforge.devices.tool_version", {"clang++": "14.0.6"}.get)
    found = [check for check in _checks.tools() if check.name in (chosen, "g++")]
    assert [(check.name, check.state.value) for check in found] == [(chosen, state)]
    assert "let CXX name one program" in found[0].fix or state == "ok"


def test_headers_of_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    assert _checks._headers().state is _checks.State.OPTIONAL
    assert re.search(r"apt-get install python3\.\d+-dev: torch\.compile", _checks._headers().fix)
    (tmp_path / "Python.h").touch()
    assert _checks._headers().state is _checks.State.OK


def test_a_home_that_one_may_not_look_into(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def closed(path: Path) -> bool:
        raise PermissionError(f"[Errno 13] Permission denied: {path}")

    monkeypatch.setattr(Path, "exists", closed)
    monkeypatch.setattr("os.access", lambda *_: False)
    found = {check.name: check for check in _checks.storage(Settings(home=tmp_path / "closed" / "home"))}
    assert (found["home"].state, found["home"].fix) == (_checks.State.MISSING, "set AGENTFORGE_HOME")
    assert found["database"].state is _checks.State.OK


@pytest.mark.parametrize(
    ("version", "state"), [("2.7.1", "missing"), ("2.13.0+cpu", "ok"), (None, "missing")]
)
def test_versions(monkeypatch: pytest.MonkeyPatch, version: str | None, state: str) -> None:
    monkeypatch.setattr("agentforge.devices.package_version", lambda _: version)
    found = {check.name: check for check in _checks.packages()}
    assert found["torch"].state.value == state
    assert "pip install" in found["torch"].fix or state == "ok"


def _plain(requirement: str) -> str:
    """The distribution that it names."""
    return re.split(r"[\[<>=]", requirement)[0]


def test_packages_are_those_of_the_metadata() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = {k: v for k, v in project["optional-dependencies"].items() if k not in ("dev", "docs")}
    named = {**dict.fromkeys(project["dependencies"], ""), **{i: k for k, v in extras.items() for i in v}}
    by_name = {_plain(line): extra for line, extra in named.items()}
    wanted = _checks._requirements()
    for name, required, _ in _checks._PACKAGES:
        assert wanted[name][1] == by_name[name]
        assert required == (by_name[name] == ""), f"{name} is required exactly if it is a plain dependency"
        assert wanted[name][0] != "0", f"the metadata names no minimum version of {name}"
    assert set(map(_plain, extras["suites"])) <= {name for name, _, _ in _checks._PACKAGES}


def test_an_old_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentforge.devices.package_version", lambda _: "0.1")
    found = {check.name: check for check in _checks.packages()}
    assert ".[llm]" in found["openai"].fix
    assert found["openai"].state is _checks.State.OPTIONAL
    assert "is older than" in found["openai"].detail


def test_a_check_that_breaks_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken() -> Any:
        raise RuntimeError("surprise")
        yield

    monkeypatch.setattr(_checks, "tools", broken)
    checks = _checks.run_checks(Settings(home=tmp_path))
    assert any("surprise" in check.detail for check in checks)
    assert any(check.name == "torch" for check in checks)
