"""The cases of `benchmarks/model_coverage.py`, and how it continues."""

from __future__ import annotations

import ast
import json
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentforge.devices import DeviceSpec, Roofline
from tests.store import nouns

CPU = DeviceSpec(kind="cpu", name="test", architecture="x86-64", threads=2)
ROOFLINE = Roofline(bandwidth=2e10, peak_flops={"float32": 1e11})
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_every_kind_of_model_is_covered():
    found = runpy.run_path(str(BENCHMARKS / "model_configurations.py"))
    families, diffusion = found["TRANSFORMERS"], found["DIFFUSERS"]
    assert len(diffusion) + sum(map(len, families.values())) >= 32
    assert {"decoder-only", "mixture of experts", "encoder-decoder", "vision", "audio"} <= families.keys()
    assert {"encoder", "state space", "detection", "multimodal"} <= families.keys()
    assert all("model_type" in config for family in families.values() for config in family.values())


def test_each_ordinary_module_draws_its_inputs():
    tree = ast.parse((BENCHMARKS / "problems" / "ordinary_modules.py").read_text())
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    drawn = [c.name for c in classes if any(getattr(n, "name", "") == "inputs" for n in c.body)]
    assert len(drawn) >= 24


def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The benchmark's names; no model of transformers is made."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "transformers", ModuleType("transformers"))
    return runpy.run_path(str(BENCHMARKS / "model_coverage.py"))


def test_an_interrupted_measurement_continues_with_what_lacks_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profiles are there already: only `optimize` runs, each model once, over two sittings."""
    bench = loaded(monkeypatch)
    out, tried = tmp_path / "results.json", list[str]()
    families = {"Lstm": "ordinary module", "Conv1d": "ordinary module", "GPT2LMHeadModel": "decoder-only"}
    before = {"profile": {"outcome": "works", "attributed": 1.0, "seconds": 1.0}}
    records = [{"name": name, "family": family, **before} for name, family in families.items()]
    refused = {"name": "Conv3d", "family": "ordinary module", "profile": {"outcome": "refused"}}
    out.write_text(json.dumps({"cases": [*records, refused]}))

    def optimized(case: Any, folder: Path, minutes: float, *_: Any) -> dict[str, Any]:
        assert [f.name for f in folder.iterdir()]
        if len(tried) == 2 and case.name not in tried:
            tried.append("")  # the first sitting ends here
            raise KeyboardInterrupt
        tried.append(case.name)
        return {"outcome": "ended", "minutes": minutes, "seconds": 1.0}

    replaced = {"optimized": optimized, "measure_roofline": lambda *_: None}
    for caller in (bench["_load"], bench["profiling"]):
        monkeypatch.setattr(caller, "run_child", caller.run_child)  # restored afterwards
    space = bench["main"].__globals__
    for name, value in replaced.items():
        monkeypatch.setitem(space, name, value)
    command = ["model_coverage.py", *families, "Conv3d", "--optimize", "0.5", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(KeyboardInterrupt):
        bench["main"]()
    assert sum("optimize" in r for r in json.loads(out.read_text())["cases"]) == 2
    bench["main"]()
    found = {r["name"]: r for r in json.loads(out.read_text())["cases"]}
    assert sorted(filter(None, tried)) == sorted(families)
    assert {name for name, r in found.items() if "optimize" in r} == families.keys()
    assert found["Lstm"]["profile"] == before["profile"]


def test_words_of_torchs_internals_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    internals = loaded(monkeypatch)["internals"]
    found = internals({"notes": ["ge is no operator of torch.ops.aten", "aten.item.default"]})
    assert found == ["aten.", "torch.ops"]
    assert internals({"error": "the latency is too high"}) == []


def test_an_error_is_told_in_the_users_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = loaded(monkeypatch)
    for caller in (bench["_load"], bench["profiling"]):
        monkeypatch.setattr(caller, "run_child", bench["here"])

    def broken(payload: object, report: object) -> None:
        raise RuntimeError("aten.item.default has no meta kernel")

    monkeypatch.setattr("agentforge.profiling.worker.profile", broken)
    profile = bench["profiling"].profile_target
    answer = bench["in_fork"](lambda: profile(nouns.target(), CPU, ROOFLINE), 60.0)
    assert answer["outcome"] == "failed"
    assert answer["error"].startswith("llama cannot be profiled: RuntimeError: no simpler reason is known;")
    assert bench["internals"](answer) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["Nothing"], "there is no case Nothing"),
        (["--optimize", "0.5", "--jobs", "2"], "two measurements at once disturb each other"),
        (["--limit", "0"], "positive numbers"),
    ],
)
def test_bad_options_are_refused(
    options: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = loaded(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["model_coverage.py", *options])
    with pytest.raises(SystemExit) as ended:
        bench["main"]()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
