"""Settings: values of all sources, and one sentence for each mistake in them."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any, NoReturn

import pytest

from agentforge.config import Settings, load_settings
from agentforge.schema import UsageError
from agentforge.store import Store


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, without settings."""
    for name in [name for name in os.environ if name.startswith("AGENTFORGE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("agentforge.toml", b"[referee\n", "agentforge.toml cannot be read"),
        ("agentforge.toml", b"trackers = '\xff'\n", "agentforge.toml cannot be read"),
        ("agentforge.toml", b"[refere]\nprocesses = 5\n", "unknown setting 'refere' in agentforge.toml"),
        ("agentforge.toml", b"[referee]\nproceses = 5\n", "setting referee.proceses"),
        (".env", b"AGENTFORGE_REFEREE={\n", "AGENTFORGE_. or the file .env cannot be read.*referee"),
        (".env", b"A='\xff'\n", "the file .env cannot be read"),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence(here: Path, file: str, content: bytes, said: str) -> None:
    (here / file).write_bytes(content)
    with pytest.raises(UsageError, match=said):
        load_settings()


@pytest.mark.parametrize("file", ["agentforge.toml", ".env"])
def test_a_file_that_cannot_be_read_is_one_sentence(here: Path, file: str) -> None:
    (here / file).symlink_to("/proc/self/mem")  # even root cannot read its first bytes
    with pytest.raises(UsageError, match=f"{file} cannot be read"):
        load_settings()


def test_a_variable_that_is_no_json_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_SEARCH__OPTIONS", "{")
    with pytest.raises(UsageError, match=r"AGENTFORGE_.*search"):
        load_settings()


def test_a_setting_and_a_part_of_it_exclude_each_other() -> None:
    with pytest.raises(UsageError, match=r"setting referee.processes is a part of referee, which is 1"):
        load_settings(["referee=1", "referee.processes=5"])


def test_paths_are_absolute_and_below_the_users_home(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "agentforge.toml").write_text('home = "~/data"\n[llm]\nrecord = "~/r.jsonl"\nprices = "p.toml"\n')
    settings = load_settings()
    assert settings.home == here / "user" / "data"
    assert (settings.llm.record, settings.llm.prices) == (here / "user" / "r.jsonl", here / "p.toml")
    monkeypatch.setenv("AGENTFORGE_HOME", "relative")
    assert load_settings().home == here / "relative"


def test_an_empty_variable_is_no_value(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTFORGE_HOME", "")
    assert load_settings().home == here / "user" / ".agentforge"


def test_a_user_without_a_home_is_told_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> NoReturn:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(UsageError, match="set AGENTFORGE_HOME"):
        load_settings()


@pytest.mark.parametrize("name", ["what?", "%41", "a #1", "?mode=ro #%41"])
def test_the_database_is_in_the_home_folder_whatever_its_name(here: Path, name: str) -> None:
    url = Settings(home=here / name).url
    Store(url).close()
    assert [path.name for path in here.iterdir()] == [name]
    assert (here / name / "agentforge.db").is_file()
    with Store(url, read_only=True) as store:
        assert store.list_runs() == ()


@pytest.mark.parametrize("name", ["run #1.jsonl", "2026-11-26", "null", "[a].jsonl"])
def test_the_value_of_an_option_is_taken_as_it_is(here: Path, name: str) -> None:
    assert load_settings(["llm.record=other"], {"llm.record": Path(name)}).llm.record == here / name


def test_a_mapping_is_copied_and_its_parts_can_be_set() -> None:
    given: dict[str, Any] = {"budget": {"minutes": 3}}
    settings = load_settings((), {**given, "budget.attempts": 2, "search.options": {"beam": 4}})
    assert (settings.budget.minutes, settings.budget.attempts) == (3, 2)
    assert settings.search.options == {"beam": 4}
    assert given == {"budget": {"minutes": 3}}


@pytest.mark.parametrize("text", ["2026-11-28", "2026-13-45", "0x_", "openai:", "1" * 5000])
def test_what_yaml_makes_something_else_of_stays_text(here: Path, text: str) -> None:
    assert load_settings([f"search.coder={text}"]).search.coder == text


@pytest.mark.parametrize(("text", "value"), [("a #1", "a #1"), ("'a #1'", "a #1"), ('"a\\tb"', "a\tb")])
def test_a_number_sign_begins_no_comment_in_an_override(here: Path, text: str, value: str) -> None:
    assert load_settings([f"search.coder={text}"]).search.coder == value
