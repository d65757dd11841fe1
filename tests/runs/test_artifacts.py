"""An artifact is written from the database, without the folder of its run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentforge.runs.artifacts import fetch_artifact, write_kernel
from agentforge.schema import ArtifactReport, RunStatus, StitchResult, UsageError
from agentforge.store import Store
from tests.stitch.making import BLOCK, stitch_in_process
from tests.stitch.test_artifact import ALONE, report
from tests.store import nouns


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as opened:
        opened.create_run(
            nouns.run("run", target=opened.save_target(nouns.target()), status=RunStatus.FINISHED)
        )
        yield opened


@pytest.mark.slow
def test_it_runs_where_the_search_did_not(store: Store, tmp_path: Path) -> None:
    block = stitch_in_process(BLOCK, tmp_path / "first")
    store.create_run(nouns.run("block", target=store.save_target(block.target), status=RunStatus.FINISHED))
    solution = store.save_solution(block.solution)
    store.save_record("block", StitchResult(mode="kernels", solution=solution, artifact="/gone"))
    with pytest.raises(UsageError, match="kept no report"):
        fetch_artifact(store, "block", tmp_path / "fetched", cache=tmp_path / "cache")
    made = report(block)  # it has the time
    store.save_record("block", ArtifactReport(data=made))
    folder = tmp_path / "fetched"
    fetch_artifact(store, "block", folder, cache=tmp_path / "cache")
    assert json.loads((folder / "report.json").read_text()) == json.loads(json.dumps(made))
    code = ALONE.format(parent=str(folder.parent), package=folder.name)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert "ran" in done.stdout, done.stderr


def test_a_kernel_lies_beside_its_reference(store: Store, tmp_path: Path) -> None:
    solution = store.save_solution(nouns.solution())
    evaluation = store.save_evaluation(nouns.evaluation(), "run")
    store.save_record("run", StitchResult(mode="kernel", solution=solution, evaluation=evaluation))
    fetch_artifact(store, "ru", tmp_path / "out", cache=tmp_path / "cache")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"model_new.py", "reference.py", "plan.json"} <= names


def test_a_kernel_replaces_an_earlier_artifact_and_nothing_else(store: Store, tmp_path: Path) -> None:
    solution = store.save_solution(nouns.solution())
    evaluation = store.save_evaluation(nouns.evaluation(), "run")
    store.save_record("run", StitchResult(mode="kernel", solution=solution, evaluation=evaluation))
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "model_new.py").write_text("my own work")
    with pytest.raises(UsageError, match="choose an empty or new folder"):
        fetch_artifact(store, "run", folder, cache=tmp_path / "cache")
    assert [path.read_text() for path in folder.iterdir()] == ["my own work"]
    (folder / "plan.json").write_text('{"mode": "eager", "units": []}')
    (folder / "kernel.cpp").write_text("of an earlier winner")
    fetch_artifact(store, "run", folder, cache=tmp_path / "cache")
    assert (folder / "model_new.py").read_text() == "pass"
    assert not (folder / "kernel.cpp").exists()
    assert not [*tmp_path.glob(".mine*")]
    fetch_artifact(store, "run", folder, cache=tmp_path / "cache")  # in the place of a kernel's artifact


def test_a_run_without_an_artifact_says_why(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no result yet: finish it with agentforge runs resume run"):
        fetch_artifact(store, "run", tmp_path / "out", cache=tmp_path)
    store.save_record("run", StitchResult(mode="eager", summary="nothing was faster"))
    with pytest.raises(UsageError, match=r"no artifact \(nothing was faster\): choose another run"):
        fetch_artifact(store, "run", tmp_path / "out", cache=tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("latin_locale")
def test_a_kernel_in_any_script_can_be_written_in_any_locale(tmp_path: Path) -> None:
    reference, evaluation = "# 融合\nclass Model: ...\n", nouns.evaluation(log="融合")
    write_kernel(tmp_path, nouns.solution("# 融合"), evaluation, nouns.definition(reference=reference))
    assert (tmp_path / "reference.py").read_text(encoding="utf-8") == reference
    assert json.loads((tmp_path / "plan.json").read_bytes())["log"] == "融合"
