"""`benchmarks/peers.py`: its arithmetic and its table, and one tiny model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MODEL = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x, ids, scale=2.0):
        return {"z": torch.relu(self.layer(x)) * scale, "next": ids + 1}


def get_inputs():
    return [torch.randn(4, 8), torch.randint(0, 5, (3,))]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def peers() -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    import peers

    yield peers
    sys.path.remove(str(BENCHMARKS))


def times(**seconds: float) -> dict[str, list[float]]:
    names = {"compile": "torch.compile", "ort": "ONNX Runtime", "ours": "AgentForge"}
    return {names.get(n, n): [s * (1 + 0.001 * i) for i in range(8)] for n, s in seconds.items()}


def measured(peers: ModuleType, ours: float, agrees: bool = True) -> dict[str, Any]:
    groups = [times(eager=4.0, control=4.0, compile=3.0, ort=1.0, ours=ours) for _ in range(3)]
    records = {n: {"agrees": True} for n in groups[0]} | {"ONNX Runtime": {"agrees": agrees}}
    records["OpenVINO"] = {"refused": "it has no operator for that"}
    found = {"parties": records, **peers.summary(groups, records)}
    return {**found, "outcome": peers.outcome(found)}


def test_the_artifact_is_compared_with_the_fastest_other_party(peers: ModuleType):
    lost, won = measured(peers, ours=2.0), measured(peers, ours=0.5)
    assert lost["best_other"] == "ONNX Runtime"
    assert lost["ours_over"]["torch.compile"]["point"] == pytest.approx(1.5)
    assert (lost["outcome"], won["outcome"]) == ("loss", "win")
    assert measured(peers, ours=1.0)["outcome"] == "about the same"


def test_a_party_with_other_answers_is_not_the_best_other(peers: ModuleType):
    found = measured(peers, ours=2.0, agrees=False)
    assert (found["best_other"], found["outcome"]) == ("torch.compile", "win")
    assert "4.00 [4.00, 4.00], other answers" in peers.table({"model.py": found})


def test_the_table_has_losses_and_reasons(peers: ModuleType):
    text = peers.table(
        {"a.py": measured(peers, ours=2.0), "b.py": {"refused": "no", "outcome": "not measured"}}
    )
    assert "0.50 [0.50, 0.50] over ONNX Runtime: loss" in text
    assert "win: 0, loss: 1, about the same: 0, not measured: 1." in text
    assert "- `a.py`, OpenVINO: it has no operator for that" in text
    assert "- `b.py`: no." in text


def test_the_page_has_a_place_for_the_table(peers: ModuleType):
    assert "\nnew\n<!-- /peers -->" in peers.TABLE.within(peers.TABLE.path.read_text(), "new\n")


def test_the_standard_set_has_models_and_operators(peers: ModuleType):
    specs = peers.standard_models()
    names = {Path(spec).name for spec in specs}
    assert {"gpt2.py", "dlrm.py", "rmsnorm.py", "cross_entropy.py"} <= names
    assert "ordinary_modules.py" not in names
    configurations = [spec for spec in specs if spec.startswith("hf:") and spec.endswith(".json")]
    assert len(configurations) == 8 and "t5.json" in names


def test_a_model_is_measured_again_for_another_commit_or_after_a_disturbance(peers: ModuleType):
    model = {"machine": 1.05, "provenance": {"commit": "a"}}
    assert peers.finished(model, "a")
    assert not peers.finished(model, "b")
    assert not peers.finished({"provenance": {"commit": "a-dirty"}}, "a-dirty")
    assert not peers.finished(model | {"machine": 1.2}, "a")


def test_an_artifact_is_used_again_unless_the_search_would_be_another(
    peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = list[str]()

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        out = Path(command[command.index("--out") + 1])
        assert not out.exists()
        out.mkdir()
        (out / "plan.json").touch()
        searches.append(command[command.index("--minutes") + 1])
        return SimpleNamespace(stdout="{}")

    (tmp_path / "tiny.py").write_text(MODEL)
    target = peers.load_target(str(tmp_path / "tiny.py"), peers.FrontendOptions())
    monkeypatch.setattr(peers, "load_target", lambda *_: target)
    monkeypatch.setattr(peers, "provenance", dict)
    monkeypatch.setattr(peers, "group", lambda *_: ({}, {}))
    monkeypatch.setattr(peers.subprocess, "run", run)
    options = SimpleNamespace(parties=["AgentForge"], minutes=1.0, groups=1, blocks=1, threads=2, again=False)

    def searched(**changes: Any) -> bool:
        before = len(searches)
        peers.measured("tiny.py", tmp_path / "work", SimpleNamespace(**{**vars(options), **changes}))
        return len(searches) > before

    assert searched() and not searched()
    assert searched(again=True) and not searched()
    assert searched(minutes=5.0) and searches[-1] == "5.0"
    assert searched(threads=1)


BRIEF = {
    "AGENTFORGE_REFEREE__COMPILE_BASELINE": "false",
    "AGENTFORGE_REFEREE__TASK_SECONDS": "0",
    "AGENTFORGE_REFEREE__FULL_SECONDS": "0.3",
    "AGENTFORGE_REFEREE__FULL_BLOCKS": "4",
    "AGENTFORGE_SEARCH__PROVE_COMPILE": "false",
}
"""Settings of the search: this file tests no verdict."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "parties",
    [["torch.compile", "freezing", "AgentForge"], ["ONNX Runtime"], ["OpenVINO"]],
    ids=["no other package", "ONNX Runtime", "OpenVINO"],
)
def test_each_party_runs_a_tiny_model(peers: ModuleType, tmp_path: Path, parties: list[str]) -> None:
    needed = [package for party in parties for package in peers.PACKAGES.get(party, ())]
    if missing := [package for package in needed if not find_spec(package)]:
        pytest.skip(f"{', '.join(missing)} is not installed: run pip install '.[peers]'")
    (tmp_path / "tiny.py").write_text(MODEL)
    options = "tiny.py --busy --minutes 0.05 --groups 1 --blocks 2 --out found.json --work work --parties"
    command = [sys.executable, str(BENCHMARKS / "peers.py"), *options.split(), *parties]
    subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ, **BRIEF})
    records = json.loads((tmp_path / "found.json").read_text())["models"]["tiny.py"]["parties"]
    assert list(records) == ["eager", "control", *parties]
    assert all(record.get("agrees") for record in records.values()), records
