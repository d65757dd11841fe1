"""Whole runs from Python: a live module, an interrupt, a notebook."""

from __future__ import annotations

import copy
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
import torch
from nbclient import NotebookClient

import agentforge
from agentforge.config import Settings
from agentforge.schema import EvaluationStatus, Event

pytestmark = pytest.mark.slow


def test_a_live_module_is_optimized_and_stays_as_it_was(
    nets: ModuleType, settings: Settings, tmp_path: Path
) -> None:
    model, x = nets.Net().eval(), torch.randn(64, 16)
    before = copy.deepcopy(model.state_dict())
    events: list[Event] = []
    result = agentforge.optimize(
        model,
        (x,),
        settings=settings,
        attempts=1,
        out=tmp_path / "fast",
        on_event=events.append,
        progress=False,
    )
    assert result.finished
    assert events[-1].kind == "run.finished"
    fast = result.model
    assert type(model) is nets.Net
    assert isinstance(fast, nets.Net)
    assert fast is not model
    assert fast.first.weight is model.first.weight
    assert list(fast.state_dict()) == list(before)
    with torch.inference_mode():
        torch.testing.assert_close(fast(x), model(x))
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert result.run in repr(result)
    assert "<table>" in result._repr_html_()
    assert len(result.bottlenecks) == len(result.report.regions)
    loaded = agentforge.load(tmp_path / "fast")
    with torch.inference_mode():
        torch.testing.assert_close(loaded.optimize(model)(x), model(x))
    again = agentforge.resume(result, settings=settings, progress=False)
    assert again.report == result.report
    assert again.model.first.weight is model.first.weight


def test_ctrl_c_leaves_a_run_that_resume_continues(nets: ModuleType, settings: Settings) -> None:
    search = settings.search.model_copy(update={"coder": "interrupted"})
    interrupted = settings.model_copy(update={"search": search})
    with pytest.raises(KeyboardInterrupt) as stopped:
        agentforge.optimize(nets.Net().eval(), torch.randn(64, 16), settings=interrupted, progress=False)
    assert isinstance(stopped.value, agentforge.RunInterrupted)
    assert f"agentforge.resume('{stopped.value.run}')" in str(stopped.value)
    result = agentforge.resume(stopped.value.run, settings=settings, progress=False)
    assert result.finished
    x = torch.randn(64, 16)
    assert result.model(x).shape == x.shape


def test_verify_gives_an_evaluation(model: Path, settings: Settings, tmp_path: Path) -> None:
    """On a device of another name than its torch device: the reference is loaded on the torch device."""
    candidate = tmp_path / "candidate.py"
    candidate.write_text(model.read_text().replace("class Model(", "class ModelNew(").replace("+ x", "- x"))
    evaluation = agentforge.verify(model, candidate, level="quick", device="null", settings=settings)
    assert evaluation.status is EvaluationStatus.INCORRECT_NUMERICAL


CELLS = [
    "import torch, agentforge",
    "from tests.quick import leave_out\nleave_out()",
    "SETTINGS = {'referee.compile_baseline': False, 'referee.task_seconds': 0, 'referee.full_seconds': 0.3,\n"
    "            'referee.full_blocks': 4, 'referee.quick_seconds': 0.2, 'budget.attempts': 1}",
    "class Scaled(torch.nn.Module):\n"
    "    def forward(self, x):\n"
    "        return torch.nn.functional.gelu(x) * 2",
    "x = torch.randn(64, 64)\nagentforge.optimize(Scaled(), (x,), minutes=0.02, settings=SETTINGS)",
]


def test_a_notebook_shows_progress_and_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.setenv("AGENTFORGE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(book, timeout=280, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = book.cells[-1].outputs
    progress = outputs[0].data["text/html"]
    assert "<pre" in progress
    assert "finished" in progress
    assert outputs[-1].data["text/plain"].startswith("Result of run ")
    assert "<table>" in outputs[-1].data["text/html"]
