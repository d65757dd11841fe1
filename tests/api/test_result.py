"""Speedups print with their evidence, tables convert, and a twin shares its weights."""

from __future__ import annotations

import builtins
import copy
import math
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import IPython
import pandas
import pytest
import torch
from torch import nn

from agentforge.analysis import Report
from agentforge.api.artifact import load, twin
from agentforge.api.live_model import structure
from agentforge.api.metric import _kept
from agentforge.api.progress import Notebook, in_notebook, view_for
from agentforge.api.result import Result, Speedup, Speedups, speedups
from agentforge.api.tables import Bottlenecks, html_table
from agentforge.api.targets import load_settings
from agentforge.api.verify import verify
from agentforge.referee.baselines.precision import wide
from agentforge.schema import Bottleneck, IntentWritten, Interval, MachineError, RunStatus, UsageError
from agentforge.views.live import Lines, View
from tests.store.nouns import bottleneck, evaluation, run, target


def test_a_speedup_prints_with_interval_and_evidence() -> None:
    speedup = Speedup(1.244, 1.18, 1.312, "verified")
    assert str(speedup) == repr(speedup) == "1.24x [1.18, 1.31], verified"
    assert float(speedup) == speedup.point == 1.244


def test_what_was_not_measured_is_nan_and_says_why() -> None:
    nothing = Speedups({}, "eager is kept")
    assert (len(nothing), list(nothing)) == (0, [])
    assert str(nothing["torch.compile"]) == "not measured: eager is kept"
    assert math.isnan(nothing["eager"].point)
    assert not nothing["eager"].point > 1
    some = speedups(evaluation(), proven=True, note="verified: 1.5x over eager")
    assert str(some["max-autotune"]) == "not measured: this baseline was not part of the evaluation"
    with pytest.raises(KeyError, match=r"the baselines are 'torch\.compile', 'eager', 'freezing'"):
        _ = nothing["jax"]


def test_only_a_proven_run_is_verified() -> None:
    found = evaluation()
    assert found.performance is not None
    proven = speedups(found, proven=True, note="")
    assert proven["eager"].point == found.performance.speedup["eager"].point
    assert proven["eager"].evidence == found.evidence.value
    if found.verified:
        assert speedups(found, proven=False, note="")["eager"].evidence == "unverified"


def test_each_baseline_has_its_name_and_best_is_the_fastest() -> None:
    found = evaluation()
    assert found.performance is not None
    low = Interval(point=0.9, low=0.85, high=0.95)
    over = {"eager": Interval(point=1.5, low=1.4, high=1.6), "compile": Interval(point=1.1, low=1, high=1.2),
            "freezing": low}  # fmt: skip
    measured = found.performance.model_copy(update={"speedup": over})
    named = speedups(found.model_copy(update={"performance": measured}), proven=True, note="")
    assert list(named) == ["eager", "torch.compile", "freezing"]
    assert named["best"].point == named["freezing"].point == 0.9
    assert math.isnan(named["max-autotune"].point)
    assert "freezing" in named
    assert "max-autotune" not in named


def test_bottlenecks_print_and_convert(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Bottlenecks([bottleneck()], ["<kept>"])
    assert isinstance(table[0], Bottleneck)
    assert table[0].definition.name in repr(table)
    assert repr(table[:1]) == repr(table)
    assert repr(table[1:]) == "no bottlenecks"
    assert "&lt;kept&gt;" in table._repr_html_()
    frame = table.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc[0, "share"] == table[0].share
    assert frame.loc[0, "outcome"] == "<kept>"

    real = builtins.__import__

    def without_pandas(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(MachineError, match=r"pip install '\.\[notebook\]'"):
        table.to_frame()


def test_a_table_fits_the_terminal_and_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = repr(Bottlenecks([bottleneck()], ["kept: nothing was verified faster than eager"]))
    assert max(map(len, shown.splitlines())) <= 60
    assert "\x1b" not in shown


def test_cells_of_a_table_are_text() -> None:
    assert "<td>&lt;b&gt;</td>" in html_table(["a"], [["<b>"]])


def test_an_artifact_travels_to_another_process_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"mode": "eager"}')
    (tmp_path / "report.json").write_text("{}")
    (tmp_path / "__init__.py").touch()
    copied = pickle.loads(pickle.dumps(load(tmp_path)))
    assert (copied.path, copied.mode) == (tmp_path, "eager")


def test_what_an_artifact_cannot_optimize_is_one_of_our_errors(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"mode": "eager"}')
    (tmp_path / "report.json").write_text("{}")
    (tmp_path / "__init__.py").write_text("def optimize(model):\n    raise RuntimeError('g++ is missing')\n")
    with pytest.raises(UsageError, match=r"give the nn\.Module to optimize, not a Tensor"):
        load(tmp_path).optimize(torch.ones(1))  # type: ignore[type-var]
    with pytest.raises(MachineError, match=r"g\+\+ is missing"):
        load(tmp_path).optimize(nn.Linear(1, 1))
    with pytest.raises(UsageError, match="there is no such user"):
        load("~no-such-user/artifact")


def test_the_folder_of_a_kernel_is_no_artifact_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"solution": "s", "evidence": "verified"}')
    (tmp_path / "reference.py").touch()
    with pytest.raises(
        UsageError, match=r"has a kernel, not a model: judge it with `agentforge verify .*ref"
    ):
        load(tmp_path)


def test_a_run_without_an_artifact_says_why() -> None:
    why = "nothing was verified faster than the reference"
    finished = Report(run=run("r", status=RunStatus.FINISHED), summary=why)
    with pytest.raises(UsageError, match=rf"because {why}: search on .* agentforge\.resume\('r', minutes="):
        Result(finished, target(), None).load()
    stopped = Report(run=run("r", status=RunStatus.INTERRUPTED))
    with pytest.raises(UsageError, match=r"no artifact: go on with agentforge\.resume\('r'\)"):
        Result(stopped, target(), None).load()


def test_a_twin_shares_all_tensors_and_nothing_else() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    model.table = torch.ones(3)
    model.tables = [torch.ones(3), {"a": (torch.ones(3), 1)}]
    model.tables.append(model.tables)
    before = copy.deepcopy(model.state_dict())
    other = twin(model)
    assert other is not model
    assert other[0] is not model[0]
    assert all(a is b for a, b in zip(other.parameters(), model.parameters(), strict=True))
    assert other[1].running_mean is model[1].running_mean
    assert other.table is model.table
    assert other.tables is not model.tables
    assert other.tables[0] is model.tables[0]
    assert other.tables[1]["a"][0] is model.tables[1]["a"][0]
    other.train()
    assert not model.training
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_attributes_that_cannot_be_copied_are_shared() -> None:
    model = nn.Sequential(nn.Linear(3, 3)).eval()
    model[0].F, model.keys, model.kept = nn.functional, {"a": 1}.keys(), [1]
    assert structure(model).modules == ()
    model.held = {"stream": sys.__stdout__, "lock": threading.Lock()}
    for other in (twin(model), wide(model)):
        assert other[0] is not model[0]
        assert other[0].F is nn.functional
        assert other.keys is model.keys
        assert other.kept is not model.kept
        assert other.held is not model.held
        assert other.held == model.held
    assert twin(model)[0].weight is model[0].weight
    assert wide(model)[0].weight.dtype is torch.float64


def test_progress_suits_the_place() -> None:
    assert type(view_for(False)) is View
    assert type(view_for(True)) is Lines
    assert type(view_for("auto")) is Lines
    assert issubclass(Notebook, View)
    with pytest.raises(UsageError, match="progress takes"):
        view_for("always")  # type: ignore[arg-type]


def test_an_artifact_is_read_in_any_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plan.json").write_text('{"mode": "größe"}', encoding="utf-8")
    (tmp_path / "report.json").write_text('{"model": "融合"}', encoding="utf-8")
    (tmp_path / "__init__.py").touch()
    read = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, encoding="iso-8859-1": read(path, encoding))
    artifact = load(tmp_path)
    assert (artifact.mode, artifact.report) == ("größe", {"model": "融合"})


@pytest.mark.usefixtures("latin_locale")
def test_a_metric_of_any_name_is_kept_in_any_locale(tmp_path: Path) -> None:
    def größe(model: Any) -> float:
        return 1.0

    file, _, name = _kept(größe, tmp_path).rpartition(":")
    assert f"{name} = pickle" in Path(file).read_bytes().decode()


def test_a_notebook_keeps_no_old_page(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda value, **_: shown.append(value))
    with Notebook() as view:
        assert "starting" in shown[-1].data
        assert view._printed.getvalue() == ""


def test_a_notebook_shows_the_reference_that_a_model_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda value, **_: shown.append(value))
    with Notebook() as view:
        view(IntentWritten(reference="class Model: ..."))
    (text,) = (value["text/plain"] for value in shown if isinstance(value, dict))
    assert "class Model: ..." in text


def test_a_subclass_of_the_kernels_shell_is_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_notebook()
    shell = type("Shell", (type("ZMQInteractiveShell", (), {}),), {})  # as Colab has it
    monkeypatch.setattr(IPython, "get_ipython", shell)
    assert in_notebook()


def test_settings_come_as_a_dict_as_strings_or_whole() -> None:
    assert load_settings({"referee.processes": 5, "search.coder": "openai:x"}).referee.processes == 5
    assert load_settings(["referee.processes=5"], budget__minutes=2).budget.minutes == 2
    assert load_settings("referee.processes=5").referee.processes == 5
    nested = load_settings({"referee": {"processes": 5}, "search.options": {"beam": 4}}, budget__minutes=2)
    assert (nested.referee.processes, nested.search.options) == (5, {"beam": 4})
    whole = load_settings(load_settings(["referee.processes=5"]), budget__minutes=2)
    assert (whole.referee.processes, whole.budget.minutes) == (5, 2)
    with pytest.raises(UsageError, match="unknown setting 'nope'"):
        load_settings({"nope": 1})


def test_bad_paths_are_refused_in_a_sentence(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="is no artifact"):
        load(tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        verify("reference.py", tmp_path / "missing.py")
    with pytest.raises(UsageError, match="level takes quick or full"):
        verify("reference.py", "candidate.py", level="deep")
