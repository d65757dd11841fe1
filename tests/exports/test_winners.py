"""Finding the kernels that won, and the command that exports them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentforge.cli import _main
from agentforge.exports import winners_of_artifact, winners_of_run
from agentforge.languages import write_solution
from agentforge.runs.artifacts import write_kernel
from agentforge.schema import StitchResult, UsageError
from agentforge.store import Store
from agentforge.testing.exports import winning_kernel
from tests.store import nouns


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with one run, which profiled one region."""
    with Store(f"sqlite:///{tmp_path / 'agentforge.db'}") as store:
        store.create_run(nouns.run("run"))
        store.save_profile("run", nouns.profile())
        yield store


def _won(store: Store, source: str = "", **changes: object) -> str:
    """Save a result in which the profile's first region has a kernel; the solution's hash."""
    bottleneck = nouns.profile().bottlenecks[0]
    solution = winning_kernel().solution.model_copy(update={"definition": bottleneck.definition.hash})
    if source:
        sources = (
            s.model_copy(update={"content": source}) if s.path == "kernel.cpp" else s
            for s in solution.sources
        )
        solution = solution.model_copy(update={"sources": tuple(sources)})
    store.save_definition(bottleneck.definition)
    store.save_solution(solution)
    chosen = {bottleneck.definition.hash: solution.hash}
    fields = {"chosen": chosen, "mode": "kernels", "calls": {bottleneck.definition.hash: 3}, **changes}
    store.save_record("run", StitchResult.model_validate(fields))
    return solution.hash


def test_a_runs_kernels_come_with_their_tasks(store: Store) -> None:
    solution = _won(store)
    (kernel,) = winners_of_run(store, "run")
    bottleneck = nouns.profile().bottlenecks[0]
    assert kernel.solution.hash == solution and kernel.task() == (
        bottleneck.definition,
        bottleneck.workloads[0],
    )
    assert kernel.name.isidentifier() and kernel.name.endswith(bottleneck.definition.hash[:6])


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "compile"},
        {"chosen": {}},
        {"calls": {"another": 1}},
        {"calls": {}, "mode": "kernels+packed"},
    ],
)
def test_a_run_without_a_winner_says_so(store: Store, changes: dict[str, Any]) -> None:
    _won(store, **changes)
    with pytest.raises(UsageError, match="no kernel won in run run"):
        winners_of_run(store, "run")


def test_a_kernel_that_is_no_part_of_a_model_needs_no_calls(store: Store) -> None:
    solution = _won(store, mode="kernel", calls={})
    assert [kernel.solution.hash for kernel in winners_of_run(store, "run")] == [solution]


def test_a_run_without_a_result_says_so(store: Store) -> None:
    with pytest.raises(UsageError, match="no result yet"):
        winners_of_run(store, "run")


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """A folder with the parts of an artifact that an export reads."""
    folder = tmp_path / "artifact"
    write_solution(winning_kernel().solution, folder / "kernels" / "scale_abc123")
    (folder / "plan.json").write_text("{}")
    return folder


def test_the_command_exports_an_artifact(artifact: Path, tmp_path: Path) -> None:
    (kernel,) = winners_of_artifact(artifact)
    assert kernel.name == "scale_abc123" and kernel.solution.spec.language == "cpp"
    done = CliRunner().invoke(
        _main.build(), ["export", str(artifact), str(tmp_path / "out"), "--to", "kernelbench", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["files"] == [str(tmp_path / "out" / "scale_abc123.py")]


def test_an_artifact_that_is_one_kernel_is_exported_as_it_is(tmp_path: Path) -> None:
    kernel = winning_kernel()
    assert kernel.definition is not None
    write_kernel(tmp_path / "artifact", kernel.solution, nouns.evaluation(), kernel.definition)
    (found,) = winners_of_artifact(tmp_path / "artifact")
    assert found.name == "twice_cpp"
    assert found.solution.hash == kernel.solution.model_copy(update={"definition": "0" * 16}).hash


def test_the_command_says_what_a_leaderboard_refuses(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _won(store, source="// a stream")
    monkeypatch.setenv("AGENTFORGE_DATABASE_URL", f"sqlite:///{tmp_path / 'agentforge.db'}")
    done = CliRunner().invoke(_main.build(), ["export", "run", str(tmp_path / "out"), "--to", "gpu-mode"])
    assert done.exit_code == 0, done.output
    assert "the word 'stream' is not allowed, and it is in kernel.cpp" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--to", "flashinfer"], "export the run instead of the artifact"),
        (["--to", "pdf"], "'pdf' is not one of the exports"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(
    artifact: Path, tmp_path: Path, arguments: list[str], says: str
) -> None:
    done = CliRunner().invoke(_main.build(), ["export", str(artifact), str(tmp_path / "out"), *arguments])
    assert isinstance(done.exception, UsageError) and says in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_no_artifact_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"neither a run nor an artifact"):
        winners_of_artifact(tmp_path)
