"""Kernels that are right and could not be verified are kept as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentforge.loop import RunLog
from agentforge.runs.unverified import write_unverified
from agentforge.store import Store
from tests.loop.conftest import Bench, make_run
from tests.loop.scripted import bottleneck, profile


def written(folder: Path, script: dict[str, list[dict[str, object]]]) -> dict[str, str]:
    """Files by region after a search over the script."""
    with Store(f"sqlite:///{folder / 'agentforge.db'}") as store:
        store.create_run(make_run())
        bottlenecks = [bottleneck(name, sol_s=1e-6) for name in script]
        Bench(store, folder).search(profile(*bottlenecks), script)
        notes = write_unverified(RunLog(store, store.get_run("run")), folder / "unverified")
    places = [Path(note.rpartition(": ")[2]) for note in notes]
    assert all((place / "reference.py").is_file() and (place / "UNVERIFIED.md").is_file() for place in places)
    return {place.name.rpartition("-")[0]: (place / "model_new.py").read_text() for place in places}


def test_the_newest_kernel_that_cannot_be_timed_is_kept(tmp_path: Path) -> None:
    untimed = [{"speed": 1.0 + i, "untimed": True} for i in range(2)]
    files = written(tmp_path, {"a/b": [*untimed, {"speed": 9.0, "status": "CRASHED"}]})
    assert list(files) == ["a_b"]
    assert '"speed": 2.0' in files["a_b"]


def test_the_fastest_kernel_that_a_busy_machine_hid_is_kept_unless_one_was_verified(tmp_path: Path) -> None:
    noisy = [{"speed": speed, "noisy": 9} for speed in (2.0, 3.0, 2.5)]
    files = written(tmp_path, {"noisy": noisy, "won": [{"speed": 4.0}, {"speed": 5.0, "noisy": 9}]})
    assert list(files) == ["noisy"]
    assert '"speed": 3.0' in files["noisy"]


def test_nothing_is_written_if_all_was_decided(tmp_path: Path) -> None:
    assert written(tmp_path, {"a": [{"speed": 2.0}, {"speed": 0.5}]}) == {}
    assert not (tmp_path / "unverified").exists()


@pytest.mark.usefixtures("latin_locale")
def test_a_name_in_any_script_can_be_written_in_any_locale(tmp_path: Path) -> None:
    assert written(tmp_path, {"融合": [{"speed": 2.0, "untimed": True}]})
    (text,) = (path.read_text(encoding="utf-8") for path in tmp_path.glob("unverified/*/UNVERIFIED.md"))
    assert "Attempt 1 for 融合." in text


def test_a_kernel_of_an_earlier_session_that_was_verified_since_does_not_stay(tmp_path: Path) -> None:
    old = tmp_path / "unverified" / "a-0000"
    old.mkdir(parents=True)
    (old / "UNVERIFIED.md").touch()
    assert written(tmp_path, {"a": [{"speed": 2.0}]}) == {}
    assert not old.exists()
