"""`agentforge campaign` in front of a real queue; items that run are in tests/campaigns/test_worker.py."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agentforge.campaigns import exports
from agentforge.campaigns.allocator import Visit
from agentforge.campaigns.extend import Extension
from agentforge.cli import _options
from agentforge.cli.answers import ANSWERS
from agentforge.schema import ItemState, TryOutcome
from agentforge.store import Store
from tests.store import nouns

from .conftest import Run


@pytest.fixture
def suite(home: Path, tmp_path: Path) -> str:
    folder = tmp_path / "problems"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.py").write_text("class Model: ...\n")
    return f"folder:{folder}"


@pytest.fixture
def queued(run: Run, suite: str) -> str:
    assert run("campaign", "start", suite, "--name", "night", "--workers", "0", "--yes").code == 0
    return suite


def test_a_start_says_what_it_can_take_and_asks(run: Run, suite: str) -> None:
    answer = run("campaign", "start", suite, "--minutes", "1", "--workers", "2")
    assert answer.code == 2
    assert "2 problems x 1 arms = 2 runs on 2 workers. At most 0 dollars and 13.0 min" in answer.err
    assert "add --yes" in answer.err
    assert run("campaign", "list", "--json").json == {"campaigns": []}


def test_without_workers_it_says_who_does_the_work(run: Run, suite: str) -> None:
    answer = run("campaign", "start", suite, "--minutes", "1", "--workers", "0", "--name", "night")
    assert (
        "2 runs for the workers that you start with `agentforge campaign work night`. At most" in answer.err
    )
    assert "0 dollars and 26.0 min with one worker" in answer.err
    assert "on 1 worker." in run("campaign", "start", suite, "--minutes", "1").err


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("list",), ("status", "night"), ("report", "night"), ("pause", "night"), ("retry", "night")]
)
def test_an_answer_has_the_published_fields(run: Run, queued: str, command: tuple[str, ...]) -> None:
    answer = run("campaign", *command, "--json")
    assert answer.code == 0
    ANSWERS[f"campaign {command[0]}"].model_validate_json(json.dumps(answer.json))
    assert run("campaign", *command).code == 0


@pytest.mark.parametrize("command", ["status", "pause", "retry"])
def test_a_look_takes_no_item_from_a_worker_and_says_what_it_waits_for(
    run: Run, queued: str, home: Path, command: str
) -> None:
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        given_back, item = (store.take_item("night", "elsewhere:1", -1.0) for _ in range(2))
        assert given_back is not None and item is not None
        store.end_item(given_back, TryOutcome.RELEASED, "no route")
        store.beat_item(item, -1.0, "waits for the GPU")
        out = " ".join(run("campaign", command, "night").out.split())
        assert "said last" in out and "waits for the GPU" in out
        assert "given back" in out and "no route" in out
        assert store.beat_item(item, 60.0, "goes on"), "its lease had run out, and its worker lives"


def test_a_paused_campaign_is_resumed(run: Run, queued: str) -> None:
    assert run("campaign", "pause", "night", "--json").json["campaign"]["state"] == "paused"
    answer = run("campaign", "work", "night")
    assert (answer.code, "campaign night is paused" in answer.err) == (0, True)
    again = run("campaign", "start", queued, "--name", "night", "--workers", "0")
    assert (again.code, "continue it with `agentforge campaign resume night`" in again.err) == (2, True)
    assert "it goes on" not in again.err
    assert run("campaign", "resume", "night", "--workers", "0", "--json").json["campaign"]["state"] == "open"


def test_a_worker_makes_no_database(run: Run, home: Path) -> None:
    answer = run("campaign", "work", "night")
    assert (answer.code, "there is no database" in answer.err) == (2, True)
    assert not (home / "agentforge.db").exists()


@pytest.mark.slow
def test_a_worker_that_a_command_began_leaves_the_last_look_to_it(run: Run, queued: str) -> None:
    run("campaign", "pause", "night")
    command = [sys.executable, "-m", "agentforge.cli", "campaign", "work", "night", "--json", "--parent"]
    done = subprocess.run([*command, str(os.getpid())], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, "campaign night is paused" in done.stderr) == (0, "", True)


def test_a_worker_may_know_the_database_alone(run: Run, queued: str, home: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{home / 'agentforge.db'}"
    run("campaign", "pause", "night")
    answer = run("campaign", "work", url)
    assert (answer.code, "campaign night is paused" in answer.err) == (0, True)
    assert run("campaign", "start", queued, "--name", "day", "--workers", "0", "--yes").code == 0
    answer = run("campaign", "work", url)
    assert (answer.code, "several campaigns with items left (day, night): run" in answer.err) == (2, True)
    empty = f"sqlite:///{tmp_path / 'empty.db'}"
    Store(empty).close()
    answer = run("campaign", "work", empty)
    assert (answer.code, "empty.db has no campaign with items left" in answer.err) == (2, True)


@pytest.mark.parametrize("url", ["nothing", "post-gres", "postgresql+psycopg"])
def test_a_message_about_a_database_has_no_password(run: Run, url: str) -> None:
    for place in ("127.0.0.1:1/d", "127.0.0.1:port/d"):
        answer = run("campaign", "work", f"{url}://me:secret@{place}")
        assert answer.code == 2 and "database" in answer.err
        assert "secret" not in answer.err


def test_a_campaign_is_removed_with_its_runs_if_that_is_wanted(run: Run, queued: str, home: Path) -> None:
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        item = store.take_item("night", "elsewhere:1", 600.0)
        assert item is not None
        store.create_run(nouns.run("of-night"))
        store.attach_run(item, "of-night")
        (home / "runs" / "of-night").mkdir(parents=True)
        busy = run("campaign", "rm", "night", "--runs")
        assert (busy.code, "worker elsewhere:1 has an item of campaign night" in busy.err) == (2, True)
        store.end_item(item, TryOutcome.DONE)
    answer = run("campaign", "rm", "night", "--runs", "--json")
    assert answer.json == {"removed": ["night"], "runs": ["of-night"]}
    assert not (home / "runs" / "of-night").exists()
    assert run("campaign", "list", "--json").json == {"campaigns": []}
    assert run("campaign", "rm", "night").code == 2


def test_all_campaigns_and_runs_are_looked_at_before_one_is_removed(
    run: Run, queued: str, home: Path
) -> None:
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        for name in ("of-night", "of-night-too"):
            item = store.take_item("night", "elsewhere:1", 600.0)
            assert item is not None
            store.create_run(nouns.run(name))
            store.attach_run(item, name)
            store.end_item(item, TryOutcome.DONE)
        with store.lock_run("of-night-too"):
            answer = run("campaign", "rm", "night", "--runs")
        assert (answer.code, "a process works on run of-night-too: wait" in answer.err) == (2, True)
        answer = run("campaign", "rm", "night", "nowhere", "--runs")
        assert (answer.code, "there is no campaign 'nowhere'" in answer.err) == (2, True)
        assert [campaign.name for campaign in store.list_campaigns()] == ["night"]
        assert {one.id for one in store.list_runs()} == {"of-night", "of-night-too"}
    answer = run("campaign", "rm", "night", "--runs", "--json")
    assert answer.json == {"removed": ["night"], "runs": ["of-night", "of-night-too"]}


def test_starting_again_continues_and_other_settings_are_refused(run: Run, queued: str) -> None:
    again = run("campaign", "start", queued, "--name", "night", "--workers", "0")
    assert (again.code, "campaign night exists: it goes on" in again.err) == (0, True)
    other = run("campaign", "start", queued, "--name", "night", "--workers", "0", "--yes", "--minutes", "7")
    assert other.code == 2
    assert "exists with other budget" in other.err


def test_starting_again_continues_a_campaign_whose_kind_of_device_is_fixed(
    run: Run, queued: str, home: Path
) -> None:
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        store.fix_device("night", "cuda")
    again = run("campaign", "start", queued, "--name", "night", "--workers", "0", "--json")
    assert (again.code, again.json["campaign"]["device"]) == (0, "cuda")
    other = run("campaign", "start", queued, "--name", "night", "--workers", "0", "--yes", "--device", "cpu")
    assert (other.code, "exists with other device" in other.err) == (2, True)


def test_a_retry_says_how_many_wait_again_and_takes_another_limit(run: Run, queued: str, home: Path) -> None:
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        item = store.take_item("night", "host:1", 60.0)
        assert item is not None
        store.end_item(item, TryOutcome.FAILED, "it does not import")
    answer = run("campaign", "retry", "night", "--failed", "--limit-minutes", "30", "--json")
    ANSWERS["campaign retry"].model_validate_json(answer.out)
    assert (answer.json["retried"], answer.json["campaign"]["limit_s"]) == (1, 1800.0)
    assert "1 item waits again" in answer.err
    wrong = run("campaign", "retry", "night", "--limit-minutes", "0")
    assert (wrong.code, "--limit-minutes 0 is no limit" in wrong.err) == (2, True)


def test_a_campaign_moves_to_another_database(run: Run, queued: str, home: Path, tmp_path: Path) -> None:
    file, there = tmp_path / "night.jsonl.gz", f"database_url=sqlite:///{tmp_path / 'there.db'}"
    assert run("campaign", "export", "night", str(file), "--format", "state").code == 0
    assert str(home) not in gzip.decompress(file.read_bytes()).decode()
    bare = run("campaign", "import", str(file), "-c", there)
    assert (bare.code, "name the place of its problems with --suite" in bare.err) == (2, True)
    answer = run("campaign", "import", str(file), "--suite", queued, "-c", there, "--json")
    ANSWERS["campaign import"].model_validate_json(answer.out)
    taken = answer.json
    assert (taken["taken"], taken["left"]) == (0, 0)
    here = run("campaign", "status", "night", "--json").json
    assert taken["states"] == here["states"]
    assert run("campaign", "resume", "night", "--workers", "0", "-c", there).code == 0


def test_a_command_that_a_message_names_leads_to_the_same_database(
    run: Run, queued: str, tmp_path: Path
) -> None:
    there = f"database_url=sqlite:///{tmp_path / 'there.db'}"
    here, begin = ("-c", there), ("campaign", "start", queued, "--name", "day", "--workers", "0", "--yes")
    resume = f"`agentforge campaign resume day -c {there}`"
    assert f"`agentforge campaign work day -c {there}`" in run(*begin, *here).err
    assert resume in run(*begin, *here, "--minutes", "9").err
    assert resume in run("campaign", "extend", "day", "--minutes", "9", *here).err
    assert f"`agentforge campaign list -c {there}`" in run("campaign", "status", "night", *here).err
    assert run("campaign", "pause", "day", *here).code == 0
    assert resume in run(*begin, *here).err
    assert resume.strip("`") in run("campaign", "work", "day", *here).err


def test_an_export_says_what_its_suite_refuses(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = tmp_path / "submission_base.py"
    submission.write_text("torch.cuda.current_stream()\n")
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        for name, suite in (("board", "gpu-mode:/x"), ("sol", "sol:/x")):
            campaign, problems = nouns.campaign(2, name=name, suite=suite)
            store.create_campaign(campaign, problems)
    monkeypatch.setattr(exports, "export_campaign", lambda *_: [submission])
    left_out = {"sol:/x": ("a (base)",)}
    monkeypatch.setattr(exports, "not_built", lambda _, found: left_out.get(found.campaign.suite, ()))
    answer = run("campaign", "export", "board", str(tmp_path))
    assert "refuse" in answer.err and "the word 'stream' is not allowed, and it is in its code" in answer.err
    answer = run("campaign", "export", "sol", str(tmp_path))
    assert "with which they compile (1): a (base)" in answer.err and "'stream'" not in answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("start", "folder:/nowhere", "--yes"), "is not a folder"),
        (("start", "nothing", "--yes"), "is no suite; give one of"),
        (("start", "SUITE", "--levels", "a-b"), "write 1-3 or 1,3"),
        (("start", "SUITE", "--levels", "3-1"), "write 1-3 or 1,3"),
        (("start", "SUITE", "--levels", "1-9999999999"), "write 1-3 or 1,3"),
        (("extend", "night", "--minutes", "10", "--dollars", "nan"), "above 0"),
        (("extend", "night", "--minutes", "10", "--dollars", "-5"), "above 0"),
        (("extend", "night", "--minutes", "10", "--hour-dollars", "nan"), "greater than or equal to 0"),
        (("extend", "night", "--minutes", "10", "--hour-dollars", "inf"), "is a finite number"),
        (("extend", "night", "--minutes", "10", "--device-hour-dollars", "inf"), "is a finite number"),
        (("start", "SUITE", "--levels", "1"), "leave out --levels"),
        (("start", "SUITE", "--only", "x*"), "choose another pattern"),
        (("start", "SUITE", "--arm", "base"), "write NAME:playbook"),
        (("start", "SUITE", "--name", "a b"), "is no name"),
        (("start", "SUITE", "-c", "search.coder=openai:m"), "name the model with --arm NAME:llm:"),
        (("status", "day"), "there is no campaign 'day'"),
        (("work", "day"), "there is no campaign 'day'"),
        (("resume", "day"), "there is no campaign 'day'"),
        (("retry", "day"), "there is no campaign 'day'"),
        (("report", "night", "--out", "/nowhere/report.md"), "cannot be written"),
        (("report", "night", "--against", "nobody"), "the names are: kernelbench"),
        (("compare", "night", "night"), "ended no problem in common"),
        (("export", "night", "out"), "is not over KernelBench"),
        (("export", "night", "/nowhere/state.gz", "--format", "state"), "cannot be written"),
        (("import", "/nowhere/state.gz"), "is no state of a campaign"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, queued: str, arguments: tuple[str, ...], words: str) -> None:
    answer = run("campaign", *(queued if part == "SUITE" else part for part in arguments))
    assert answer.code == 2
    assert words in answer.err
    assert "Traceback" not in answer.err
    assert len(answer.err.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_watched_campaign_is_shown_until_no_item_is_left(run: Run, queued: str, home: Path) -> None:
    assert run("campaign", "status", "night", "--watch", "--json").code == 2
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:

        def work() -> None:
            time.sleep(1.0)
            while item := store.take_item("night", "host:1", 60.0):
                store.end_item(item, TryOutcome.FAILED, "it does not import")

        worker = threading.Thread(target=work)
        worker.start()
        answer = run("campaign", "status", "night", "--watch")
        worker.join()
    assert answer.code == 0
    assert "campaign night (open): 2 failed" in answer.out
    assert "device-seconds" in answer.out
    assert "it does not import" in answer.out


def test_an_extension_says_what_it_expects_and_the_most(run: Run, queued: str, home: Path) -> None:
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        while item := store.take_item("night", "host:1", 60.0):
            store.end_item(item, TryOutcome.FAILED, "it does not import")
    answer = run("campaign", "extend", "night", "--minutes", "5")
    assert answer.out.splitlines()[0] == "0 visits for fast_1: about 0.0 min and 0.00 dollars (at most 0.00)"
    answer = run("campaign", "extend", "night", "--minutes", "5", "--json")
    ANSWERS["campaign extend"].model_validate_json(answer.out)


def test_an_extension_whose_cost_is_known_in_part_says_at_least(
    run: Run, queued: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = Visit(item=1, problem="p", arm="llm", gain=1.0, seconds=60.0, dollars=0.25, most_dollars=1.0)
    visits = (visit, visit.model_copy(update={"dollars": None}))
    found = Extension(
        campaign="night", objective="fast_1", visits=visits, seconds=120.0, dollars=None, most_dollars=2.0
    )
    monkeypatch.setattr("agentforge.campaigns.extend.extend", lambda *_, **__: found)
    said = run("campaign", "extend", "night", "--minutes", "5").out.splitlines()[0]
    assert said == "2 visits for fast_1: about 2.0 min and at least 0.25 dollars (at most 2.00)"


def test_a_worker_of_another_version_is_refused(run: Run, queued: str, home: Path) -> None:
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:
        older = store.get_campaign("night").model_copy(update={"name": "older", "version": "0.0.7"})
        store.create_campaign(older, store.campaign_problems("night"))
    for command in ("work", "resume"):
        answer = run("campaign", command, "older")
        assert (answer.code, "install 0.0.7 on this machine" in answer.err) == (2, True)
    answer = run("campaign", "start", queued, "--name", "older", "--yes")
    assert (answer.code, "install 0.0.7 on this machine" in answer.err) == (2, True)


def test_a_start_that_is_not_wanted_begins_nothing(
    run: Run, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    answer = run("campaign", "start", suite, "--name", "night")
    assert (answer.code, answer.err.splitlines()[-1]) == (1, "nothing was begun")
    answer = run("campaign", "start", suite, "--name", "night", "--json")
    assert (answer.code, "add --yes to begin" in answer.json["error"]) == (2, True)
    assert run("campaign", "list", "--json").json == {"campaigns": []}


def test_a_report_is_written_to_a_file(run: Run, queued: str, tmp_path: Path) -> None:
    for form, begins in (
        ("markdown", "# Campaign night"),
        ("html", "<!doctype html>"),
        ("csv", "problem,group"),
        ("json", '{"campaign"'),
    ):
        file = tmp_path / f"report.{form}"
        answer = run("campaign", "report", "night", "--format", form, "--out", str(file), "--json")
        assert answer.json == {"files": [str(file)]}
        if form in ("html", "csv"):
            refused = run("campaign", "report", "night", "--format", form, "--json")
            assert (refused.code, f"leave out --format {form}" in refused.json["error"]) == (2, True)
        ANSWERS["campaign report --out"].model_validate_json(answer.out)
        assert file.read_text().startswith(begins)


def _start(folder: Path, home: Path, *prefix: str) -> subprocess.Popen[str]:
    """`campaign start` with two workers, in a process."""
    command = [sys.executable, "-m", "agentforge.cli", "campaign", "start", f"folder:{folder}", "--yes"]
    command += ["--name", "night", "--workers", "2", "--device", "cpu", "--json"]
    environment = {**os.environ, "AGENTFORGE_HOME": str(home)}
    return subprocess.Popen(
        [*prefix, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def _suite(folder: Path, text: str) -> Path:
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}_problem.py").write_text(text)
    return folder


@pytest.mark.slow
def test_two_workers_end_all_items(home: Path, tmp_path: Path) -> None:
    process = _start(_suite(tmp_path / "problems", "import a_package_that_is_nowhere\n"), home)
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    status = json.loads(out)
    assert (status["finished"], status["states"]["failed"]) == (True, 3)
    assert "[3/3]" in err


@pytest.mark.slow
def test_ctrl_c_gives_all_items_back(home: Path, tmp_path: Path) -> None:
    process = _start(_suite(tmp_path / "problems", "import time\ntime.sleep(600)\n"), home)
    until = time.monotonic() + 120
    with Store(f"sqlite:///{home / 'agentforge.db'}") as store:

        def states() -> list[ItemState]:
            return [item.state for item in store.campaign_items("night")]

        while states().count(ItemState.RUNNING) < 2 and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(3.0)  # into the items' processes
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "continue with: agentforge campaign resume night" in err
        answer = ANSWERS["error"].model_validate_json(out).model_dump()
        assert (answer["error"], answer["resume"]) == ("interrupted", "agentforge campaign resume night")
        assert "Traceback" not in err
        until = time.monotonic() + 10
        while set(states()) != {ItemState.WAITING} and time.monotonic() < until:
            time.sleep(0.2)
        assert set(states()) == {ItemState.WAITING}
        assert not any(item.lost for item in store.campaign_items("night"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "more"),
    [
        ([], ""),
        (["referee.threads=1"], ""),
        (["database_url=sqlite:///x.db"], " -c database_url=sqlite:///x.db"),
        (["database_url=postgresql://me:secret@host/db"], " -c 'database_url=postgresql://me:***@host/db'"),
        (["home=/a/b", "home=/a/my data"], " -c 'home=/a/my data'"),
    ],
)
def test_the_way_on_names_the_database_of_the_command_line(config: list[str], more: str) -> None:
    assert _options.same_database(config) == more


@pytest.mark.slow
def test_workers_of_a_script_in_the_background_end_with_their_parent(home: Path, tmp_path: Path) -> None:
    ignoring = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")
    with _start(_suite(tmp_path / "problems", "import time\ntime.sleep(600)\n"), home, *ignoring) as process:
        until = time.monotonic() + 120
        with Store(f"sqlite:///{home / 'agentforge.db'}") as store:

            def states() -> list[ItemState]:
                return [item.state for item in store.campaign_items("night")]

            while states().count(ItemState.RUNNING) < 2 and time.monotonic() < until:
                time.sleep(0.2)
            process.kill()
            until = time.monotonic() + 60
            while set(states()) != {ItemState.WAITING} and time.monotonic() < until:
                time.sleep(0.2)
            assert set(states()) == {ItemState.WAITING}
